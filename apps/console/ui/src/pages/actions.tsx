import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ActionPage } from "../../../src/contract.js";
import { call, query } from "../api.js";
import { More, Problem, Table } from "../parts/common.js";
import { moment } from "../words.js";

/** What was done through the console, by whom and why. */
export function Actions() {
  const [cursor, setCursor] = useState<string>();
  const { data, error } = useQuery({
    queryKey: ["actions", cursor],
    queryFn: async () => await call<ActionPage>("GET", `/console/actions${query({ cursor })}`),
  });
  return (
    <>
      <h1>Actions</h1>
      <Problem error={error} />
      <Table head={["When", "Who", "Tenant", "What", "About", "Why", "Result"]}>
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
      <More cursor={data?.nextCursor} next={setCursor} />
    </>
  );
}
