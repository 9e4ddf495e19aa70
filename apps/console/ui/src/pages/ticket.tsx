import type { ticketDetail } from "@countersign/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { z } from "zod";
import { call } from "../api.js";
import { Problem, State, Table } from "../parts/common.js";
import { Decide } from "../parts/decide.js";
import { moment, spoken } from "../words.js";

type Detail = z.output<typeof ticketDetail>;
type About = NonNullable<Detail["operation"]>;

/** One ticket: what is known, and what may be decided, with what it would do. */
export function Ticket({ tenant, id }: { tenant: string; id: string }) {
  const { data, error } = useQuery({
    queryKey: ["ticket", tenant, id],
    queryFn: async () => await call<Detail>("GET", `/api/${tenant}/v1/tickets/${id}`),
    refetchInterval: 10_000,
  });
  const [planned, setPlanned] = useState<string[]>();
  if (data === undefined) return error === null ? <p>Loading…</p> : <Problem error={error} />;
  return (
    <>
      <h1>
        {spoken(data.kind)}: {spoken(data.reason)}
      </h1>
      <p>
        {data.owner}, opened {moment(data.openedAt)}, due {moment(data.dueAt)}. About {data.subjectKind}{" "}
        <Subject tenant={tenant} ticket={data} />
      </p>
      <Problem error={error} />
      {planned === undefined ? null : (
        <div className="note" role="status">
          <strong>Decided.</strong> {planned.length === 0 ? "Nothing more was planned." : "Planned:"}
          <ul>
            {planned.map((each) => (
              <li key={each}>
                VOID{" "}
                <Link to={`/t/${tenant}/operations/${each}`} data-testid="planned-void">
                  {each}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      )}
      {data.operation === null ? null : <Evidence tenant={tenant} about={data.operation} />}
      {data.resolvedAt === null ? (
        <Decide tenant={tenant} ticket={data} done={setPlanned} />
      ) : (
        <p className="note">
          Closed {moment(data.resolvedAt)} by {data.resolvedBy}: {data.resolution}
        </p>
      )}
    </>
  );
}

function Subject({ tenant, ticket }: { tenant: string; ticket: Detail }) {
  const { subjectKind, subjectId } = ticket;
  if (subjectKind === "operation") return <Link to={`/t/${tenant}/operations/${subjectId}`}>{subjectId}</Link>;
  if (subjectKind === "inbox") return <Link to={`/t/${tenant}/inbox/${subjectId}`}>{subjectId}</Link>;
  return <code>{subjectId}</code>;
}

function Evidence({ tenant, about }: { tenant: string; about: About }) {
  return (
    <>
      <p>
        {about.action} <State of={about.state} />{" "}
        {about.waiting.length === 0 ? null : `${about.waiting.length} operations wait for it.`}
      </p>
      <Table head={["Reference", "Role", "Signing"]}>
        {about.references.map((each) => (
          <tr key={each.reference}>
            <td className="id">{each.reference}</td>
            <td>{each.role}</td>
            <td>{each.status ?? "–"}</td>
          </tr>
        ))}
      </Table>
      {about.waiting.map((each) => (
        <p key={each.operationId}>
          Waits: {each.action} <Link to={`/t/${tenant}/operations/${each.operationId}`}>{each.operationId}</Link>
        </p>
      ))}
    </>
  );
}
