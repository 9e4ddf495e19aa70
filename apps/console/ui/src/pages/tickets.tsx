import type { ticketPage } from "@countersign/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import type { z } from "zod";
import { call, query } from "../api.js";
import { More, Problem, Table } from "../parts/common.js";
import { moment, spoken } from "../words.js";

type Page = z.output<typeof ticketPage>;

/** What somebody is asked to look at, the most urgent first. */
export function Tickets({ tenant, title, kinds }: { tenant: string; title: string; kinds?: readonly string[] }) {
  const [params] = useSearchParams();
  const [status, setStatus] = useState("open");
  const [cursor, setCursor] = useState<string>();
  const chosen = kinds ?? (params.get("kind") === null ? [undefined] : [params.get("kind") ?? undefined]);
  const { data, error } = useQuery({
    queryKey: ["tickets", tenant, chosen, status, cursor],
    queryFn: async (): Promise<Page> => {
      const pages = await Promise.all(
        chosen.map(
          async (kind) => await call<Page>("GET", `/api/${tenant}/v1/tickets${query({ status, kind, cursor })}`),
        ),
      );
      return {
        data: pages.flatMap((page) => page.data).sort((a, b) => (a.dueAt < b.dueAt ? -1 : 1)),
        nextCursor: pages.length === 1 ? (pages[0]?.nextCursor ?? null) : null,
      };
    },
    refetchInterval: 10_000,
  });
  return (
    <>
      <h1>{title}</h1>
      <div className="row">
        <label>
          status
          <select
            value={status}
            onChange={({ target }) => {
              setCursor(undefined);
              setStatus(target.value);
            }}
          >
            <option>open</option>
            <option>closed</option>
          </select>
        </label>
      </div>
      <Problem error={error} />
      <Table head={["Kind", "Reason", "About", "Owner", "Opened", "Due", "Resolution"]} testId="tickets-table">
        {data?.data.length === 0 ? (
          <tr>
            <td colSpan={7} className="dim">
              None.
            </td>
          </tr>
        ) : null}
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
      <More cursor={data?.nextCursor} next={setCursor} />
    </>
  );
}
