import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { OperationPageAnswer } from "../../../src/contract.js";
import { call } from "../api.js";
import { Problem, State, Table } from "../parts/common.js";
import { useMayAct } from "../session.js";
import { moment, spoken, timeline, wentOut } from "../words.js";

const over = new Set(["CONFIRMED", "TERMINAL_FAILED", "SUPERSEDED"]);

/** Did it go out? Then how we know, then everything. */
export function Operation({ tenant, id }: { tenant: string; id: string }) {
  const { data, error } = useQuery({
    queryKey: ["operation", tenant, id],
    queryFn: async () => await call<OperationPageAnswer>("GET", `/console/${tenant}/operations/${id}`),
    refetchInterval: ({ state }) => (over.has(state.data?.operation.state ?? "") ? 30_000 : 3_000),
  });
  if (data === undefined) return error === null ? <p>Loading…</p> : <Problem error={error} />;
  const { operation } = data;
  return (
    <>
      <h1>
        {operation.action} <code>{operation.intentKey}</code> <State of={operation.state} />
      </h1>
      <p className="answer" data-testid="answer">
        {wentOut[operation.sent]} {operation.userMessage}
      </p>
      <ul>
        {operation.because.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      {operation.nextLookAt === null ? null : <p className="dim">Looked at next: {moment(operation.nextLookAt)}</p>}
      <Problem error={error} />
      <Tickets tenant={tenant} data={data} />
      <h2>Timeline</h2>
      <ol className="timeline" data-testid="timeline">
        {timeline(operation.history ?? [], data.events, operation.nearMisses ?? []).map((entry) => (
          <li key={`${entry.at} ${entry.what} ${entry.detail}`}>
            <span className="dim">{moment(entry.at)}</span>
            <span>
              <strong>{entry.what}</strong> <span className="dim">{entry.detail}</span>
            </span>
          </li>
        ))}
      </ol>
      <References data={data} />
      <Related tenant={tenant} data={data} />
      <Reveal tenant={tenant} id={id} />
      <Done data={data} />
      <details>
        <summary>Raw facts</summary>
        <pre>{JSON.stringify({ ...data.operation, events: data.events }, null, 2)}</pre>
      </details>
    </>
  );
}

function Tickets({ tenant, data }: { tenant: string; data: OperationPageAnswer }) {
  const open = data.tickets.filter(({ resolvedAt }) => resolvedAt === null);
  return open.map((each) => (
    <p className="note" key={each.ticketId}>
      A person is asked: <Link to={`/t/${tenant}/tickets/${each.ticketId}`}>{spoken(each.kind)}</Link>,{" "}
      {spoken(each.reason)}; {each.owner}, due {moment(each.dueAt)}.
    </p>
  ));
}

function References({ data }: { data: OperationPageAnswer }) {
  if (data.references.length === 0) return null;
  return (
    <>
      <h2>Requests at the provider</h2>
      <Table head={["Reference", "Role", "Signing", "Learnt from"]}>
        {data.references.map((each) => (
          <tr key={each.reference}>
            <td className="id">{each.reference}</td>
            <td>{each.role}</td>
            <td>{each.status ?? "–"}</td>
            <td>{each.source ?? "–"}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function Related({ tenant, data }: { tenant: string; data: OperationPageAnswer }) {
  if (data.related.length === 0) return null;
  return (
    <>
      <h2>Related operations</h2>
      <Table head={["Operation", "Action", "State", "How"]}>
        {data.related.map((each) => (
          <tr key={`${each.operationId} ${each.relation}`}>
            <td className="id">
              <Link to={`/t/${tenant}/operations/${each.operationId}`}>{each.operationId}</Link>
            </td>
            <td>{each.action}</td>
            <td>
              <State of={each.state} />
            </td>
            <td>{each.relation}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** Gone again with the page. */
function Reveal({ tenant, id }: { tenant: string; id: string }) {
  const mayAct = useMayAct();
  const [why, setWhy] = useState("");
  const [shown, setShown] = useState<object | null>();
  const [error, setError] = useState<unknown>();
  if (!mayAct) return <p className="dim">Signers and document are shown to operators only.</p>;
  const reveal = async (): Promise<void> => {
    try {
      const { payload } = await call<{ payload: object | null }>("POST", `/console/${tenant}/operations/${id}/reveal`, {
        why,
      });
      setShown(payload);
      setError(undefined);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <>
      <h2>Signers and document</h2>
      <Problem error={error} />
      {shown === undefined ? (
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            void reveal();
          }}
        >
          <label className="grow">
            Why do you need them? (recorded)
            <input required minLength={3} maxLength={500} value={why} onChange={({ target }) => setWhy(target.value)} />
          </label>
          <button type="submit" data-testid="reveal">
            Show
          </button>
        </form>
      ) : shown === null ? (
        <p>They have been erased.</p>
      ) : (
        <pre>{JSON.stringify(shown, null, 2)}</pre>
      )}
    </>
  );
}

function Done({ data }: { data: OperationPageAnswer }) {
  if (data.actions.length === 0) return null;
  return (
    <>
      <h2>Done here about it</h2>
      <Table head={["When", "Who", "What", "Why"]}>
        {data.actions.map((each) => (
          <tr key={each.at}>
            <td>{moment(each.at)}</td>
            <td>{each.operator}</td>
            <td>{each.action}</td>
            <td>{each.why ?? "–"}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}
