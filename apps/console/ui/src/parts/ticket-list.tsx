import type { ticketPage } from "@countersign/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { z } from "zod";
import { call, query } from "../api.js";
import { moment, spoken } from "../words.js";
import { NoRows, Problem, Table, Turn } from "./common.js";

type Page = z.output<typeof ticketPage>;

/** Tickets of one kind, or of all, a page at a time: the most urgent first. Remount it (`key`) for another filter. */
export function TicketList({ tenant, status, kind }: { tenant: string; status: string; kind?: string | undefined }) {
  const [cursor, setCursor] = useState<string>();
  const { data, error } = useQuery({
    queryKey: ["tickets", tenant, kind, status, cursor],
    queryFn: async () => await call<Page>("GET", `/api/${tenant}/v1/tickets${query({ status, kind, cursor })}`),
    refetchInterval: 10_000,
  });
  return (
    <>
      <Problem error={error} />
      <Table head={["Kind", "Reason", "About", "Owner", "Opened", "Due", "Resolution"]} testId="tickets-table">
        <NoRows of={data?.data} columns={7} />
        {data?.data.map((each) => (
          <tr key={each.ticketId}>
            <td>
              <Link to={`/t/${tenant}/tickets/${each.ticketId}`}>{spoken(each.kind)}</Link>
            </td>
            <td>{spoken(each.reason)}</td>
            <td className="id">
              {each.subjectKind} {each.subjectId}
            </td>
            <td>{each.owner}</td>
            <td>{moment(each.openedAt)}</td>
            <td className={each.resolvedAt === null && Date.parse(each.dueAt) < Date.now() ? "bad" : ""}>
              {moment(each.dueAt)}
            </td>
            <td>{each.resolution ?? "–"}</td>
          </tr>
        ))}
      </Table>
      <Turn cursor={cursor} next={data?.nextCursor} to={setCursor} />
    </>
  );
}
