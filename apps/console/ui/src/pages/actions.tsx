import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "wouter";
import type { ActionPage } from "../../../src/contract.js";
import { call, query } from "../api.js";
import { NoRows, Problem, Table, Turn } from "../parts/common.js";
import { moment } from "../words.js";

/** What was done through the console, by whom and why. */
export function Actions() {
  const [params] = useSearchParams();
  const tenant = params.get("tenant") ?? undefined;
  return <ActionList key={tenant ?? ""} tenant={tenant} />;
}

function ActionList({ tenant }: { tenant: string | undefined }) {
  const [cursor, setCursor] = useState<string>();
  const { data, error } = useQuery({
    queryKey: ["actions", tenant, cursor],
    queryFn: async () => await call<ActionPage>("GET", `/console/actions${query({ tenant, cursor })}`),
  });
  return (
    <>
      <h1>Actions{tenant === undefined ? "" : ` of ${tenant}`}</h1>
      <Problem error={error} />
      <Table head={["When", "Who", "Tenant", "What", "About", "Why", "Result"]}>
        <NoRows of={data?.data} columns={7} />
        {data?.data.map((each) => (
          <tr key={each.actionId}>
            <td>{moment(each.at)}</td>
            <td>
              {each.operator} ({each.role})
            </td>
            <td>{each.tenantId ?? "–"}</td>
            <td>{each.action}</td>
            <td className="id">{each.subjectId ?? "–"}</td>
            <td>{each.why ?? "–"}</td>
            <td>{each.status ?? "not known"}</td>
          </tr>
        ))}
      </Table>
      <Turn cursor={cursor} next={data?.nextCursor} to={setCursor} />
    </>
  );
}
