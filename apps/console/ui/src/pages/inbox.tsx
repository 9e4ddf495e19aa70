import type { inboxPage } from "@countersign/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { z } from "zod";
import { call, query } from "../api.js";
import { NoRows, Problem, Table, Turn } from "../parts/common.js";
import { ReplayAll } from "../parts/replay-all.js";
import { TicketList } from "../parts/ticket-list.js";
import { moment, spoken } from "../words.js";

type Page = z.output<typeof inboxPage>;
/** Events that wait for a person; the dead ones with the tickets of other work that failed too often. */
export function Inbox({ tenant, title, status }: { tenant: string; title: string; status: "QUARANTINED" | "DEAD" }) {
  const [cursor, setCursor] = useState<string>();
  const { data, error } = useQuery({
    queryKey: ["inbox", tenant, status, cursor],
    queryFn: async () => await call<Page>("GET", `/api/${tenant}/v1/inbox${query({ status, cursor })}`),
    refetchInterval: 10_000,
  });
  return (
    <>
      <h1>{title}</h1>
      <Problem error={error} />
      <ReplayAll tenant={tenant} status={status} />
      <Table head={["Event", "Type", "Reason", "Reference", "Received", "Failures", "Body"]} testId="inbox-table">
        <NoRows of={data?.data} columns={7} />
        {data?.data.map((each) => (
          <tr key={each.inboxId}>
            <td className="id">
              <Link to={`/t/${tenant}/inbox/${each.inboxId}`}>{each.inboxId}</Link>
            </td>
            <td>{each.type ?? "–"}</td>
            <td>{each.reason === null ? "–" : spoken(each.reason)}</td>
            <td className="id">{each.reference ?? "–"}</td>
            <td>{moment(each.receivedAt)}</td>
            <td>{each.failures}</td>
            <td>{each.hasBody ? "kept" : "erased"}</td>
          </tr>
        ))}
      </Table>
      <Turn cursor={cursor} next={data?.nextCursor} to={setCursor} />
      {status === "DEAD" ? (
        <>
          <h2>Tickets about work that failed too often</h2>
          <TicketList tenant={tenant} status="open" kind="dead-letter" />
        </>
      ) : null}
    </>
  );
}
