import type { OpenDecision, ticketDetail } from "@countersign/client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { z } from "zod";
import { useAct } from "../act.js";
import { call } from "../api.js";
import { type Choice, decisionKey, stillStands } from "../choice.js";
import { useMayAct, useSession } from "../session.js";
import { consequences, dependantsWords, moment } from "../words.js";
import { Problem } from "./common.js";

type Ticket = z.output<typeof ticketDetail>;

/** What may be decided on a ticket, with its consequences before the click. @param done gets the VOIDs it planned */
export function Decide(props: { tenant: string; ticket: Ticket; done: (planned: string[]) => void }) {
  const mayAct = useMayAct();
  return mayAct ? <DecideForm {...props} /> : <p className="note">An operator decides this.</p>;
}

function DecideForm({ tenant, ticket, done }: { tenant: string; ticket: Ticket; done: (planned: string[]) => void }) {
  const { operator } = useSession();
  const client = useQueryClient();
  const { busy, error, run } = useAct();
  const [why, setWhy] = useState("");
  const [choice, setChoice] = useState<Choice>();
  const [dependants, setDependants] = useState("");
  const { operation } = ticket;
  const decisions = operation?.decisions ?? [];
  const stands = choice !== undefined && operation !== null && stillStands(choice, operation);
  const chosen = stands ? choice : undefined;
  const send = async (): Promise<void> => {
    const words = { who: operator, why };
    if (chosen !== undefined) done(await decide(tenant, ticket, chosen, { ...words, dependants }));
    else {
      await call("POST", `/api/${tenant}/v1/tickets/${ticket.ticketId}/resolve`, { who: operator, resolution: why });
      done([]);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        // Refused or not: what is decided next is decided on what is known now.
        void run(send).then(async () => await client.invalidateQueries({ queryKey: ["ticket"] }));
      }}
    >
      <h2>Decide</h2>
      {operation?.decidableFrom == null || decisions.length === 0 ? null : (
        <p className="dim">Not before {moment(operation.decidableFrom)}: an attempt may still become visible.</p>
      )}
      <div className="cards">
        {decisions.map((each) => (
          <DecisionCard
            key={decisionKey(each)}
            decision={each}
            chosen={chosen !== undefined && decisionKey(chosen.decision) === decisionKey(each)}
            choose={() => {
              setChoice({ decision: each, evidenceNo: operation?.evidenceNo ?? 0 });
              setDependants("");
            }}
          />
        ))}
      </div>
      {choice !== undefined && !stands ? (
        <p className="warn" role="alert">
          Something came in after you chose. Read the decisions again, and choose anew.
        </p>
      ) : null}
      {chosen === undefined ? null : <Dependants of={chosen.decision} value={dependants} onChange={setDependants} />}
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
          disabled={busy || (decisions.length > 0 && chosen === undefined)}
        >
          {decisions.length > 0 ? "Decide" : "Close the ticket"}
        </button>
      </div>
      <Problem error={error} />
    </form>
  );
}

/** A `duplicate` ticket is decided by what is kept; a review by a decision on its operation. */
async function decide(
  tenant: string,
  ticket: Ticket,
  { decision, evidenceNo }: Choice,
  { dependants, ...words }: { who: string; why: string; dependants: string },
): Promise<string[]> {
  const base = `/api/${tenant}/v1`;
  const [path, body] =
    ticket.kind === "duplicate"
      ? [`${base}/tickets/${ticket.ticketId}/decide`, { ...words, evidenceNo, keep: decision.reference }]
      : [
          `${base}/operations/${ticket.subjectId}/review`,
          {
            ...words,
            evidenceNo,
            decision: decision.decision,
            ...(decision.reference === null ? {} : { reference: decision.reference }),
            ...(dependants === "" ? {} : { dependants }),
          },
        ];
  return (await call<{ planned: string[] }>("POST", path, body)).planned;
}

function DecisionCard(props: { decision: OpenDecision; chosen: boolean; choose: () => void }) {
  const { decision, chosen, choose } = props;
  return (
    <button
      type="button"
      className="card"
      aria-pressed={chosen}
      data-testid={`decision-${decision.decision}-${decision.reference ?? "none"}`}
      onClick={choose}
    >
      <strong>
        {chosen ? "● " : "○ "}
        {decision.decision} {decision.reference}
      </strong>
      {consequences(decision).map((line) => (
        <div key={line}>{line}</div>
      ))}
    </button>
  );
}

/** Nothing is chosen for them beforehand: each of the words does something else. */
function Dependants(props: { of: OpenDecision; value: string; onChange: (value: string) => void }) {
  if (props.of.dependants.length === 0) return null;
  return (
    <label>
      Those that wait for it
      <select
        required
        value={props.value}
        data-testid="decision-dependants"
        onChange={({ target }) => props.onChange(target.value)}
      >
        <option value="">choose…</option>
        {props.of.dependants.map((each) => (
          <option key={each} value={each}>
            {each}: {dependantsWords[each]}
          </option>
        ))}
      </select>
    </label>
  );
}
