import type { OpenDecision, ticketDetail } from "@countersign/client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { z } from "zod";
import { call } from "../api.js";
import { Problem, State, Table } from "../parts/common.js";
import { useMayAct, useSession } from "../session.js";
import { consequences, moment, spoken } from "../words.js";

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

function Decide({ tenant, ticket, done }: { tenant: string; ticket: Detail; done: (planned: string[]) => void }) {
  const mayAct = useMayAct();
  const { operator } = useSession();
  const client = useQueryClient();
  const [why, setWhy] = useState("");
  const [chosen, setChosen] = useState<OpenDecision>();
  const [dependants, setDependants] = useState("");
  const [error, setError] = useState<unknown>();
  if (!mayAct) return <p className="note">An operator decides this.</p>;
  const { operation } = ticket;
  const decisions = operation?.decisions ?? [];
  const send = async (): Promise<void> => {
    try {
      if (chosen === undefined || operation === null) {
        await call("POST", `/api/${tenant}/v1/tickets/${ticket.ticketId}/resolve`, { who: operator, resolution: why });
        done([]);
      } else if (ticket.kind === "duplicate") {
        const body = { who: operator, why, keep: chosen.reference, evidenceNo: operation.evidenceNo };
        const answer = await call<{ planned: string[] }>(
          "POST",
          `/api/${tenant}/v1/tickets/${ticket.ticketId}/decide`,
          body,
        );
        done(answer.planned);
      } else {
        const body = {
          who: operator,
          why,
          decision: chosen.decision,
          evidenceNo: operation.evidenceNo,
          ...(chosen.reference === null ? {} : { reference: chosen.reference }),
          ...(dependants === "" ? {} : { dependants }),
        };
        const answer = await call<{ planned: string[] }>(
          "POST",
          `/api/${tenant}/v1/operations/${ticket.subjectId}/review`,
          body,
        );
        done(answer.planned);
      }
      setError(undefined);
      await client.invalidateQueries({ queryKey: ["ticket"] });
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <h2>Decide</h2>
      {operation?.decidableFrom == null ? null : (
        <p className="dim">Not before {moment(operation.decidableFrom)}: an attempt may still become visible.</p>
      )}
      <div className="cards">
        {decisions.map((each) => (
          <button
            type="button"
            className="card"
            key={`${each.decision} ${each.reference ?? ""}`}
            aria-pressed={chosen === each}
            data-testid={`decision-${each.decision}-${each.reference ?? "none"}`}
            onClick={() => {
              setChosen(each);
              setDependants(each.dependants[0] ?? "");
            }}
          >
            <strong>
              {chosen === each ? "● " : "○ "}
              {each.decision} {each.reference}
            </strong>
            {consequences(each).map((line) => (
              <div key={line}>{line}</div>
            ))}
          </button>
        ))}
      </div>
      {chosen === undefined || chosen.dependants.length === 0 ? null : (
        <label>
          Those that wait for it
          <select value={dependants} onChange={({ target }) => setDependants(target.value)}>
            {chosen.dependants.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      <div className="row">
        <label className="grow">
          Why? (kept with the decision)
          <input
            required
            maxLength={500}
            value={why}
            data-testid="decision-why"
            onChange={({ target }) => setWhy(target.value)}
          />
        </label>
        <button
          type="submit"
          className="main"
          data-testid="decision-confirm"
          disabled={decisions.length > 0 && chosen === undefined}
        >
          {decisions.length > 0 ? "Decide" : "Close the ticket"}
        </button>
      </div>
      <Problem error={error} />
    </form>
  );
}
