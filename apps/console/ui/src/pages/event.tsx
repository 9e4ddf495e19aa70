import type { InboxReplayAnswer, inboxDetail } from "@countersign/client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { z } from "zod";
import { useAct } from "../act.js";
import { call } from "../api.js";
import { Problem, State } from "../parts/common.js";
import { useMayAct, useSession } from "../session.js";
import { moment, replayWords, spoken } from "../words.js";

type Detail = z.output<typeof inboxDetail>;

/** One webhook event, and what replaying it would do. */
export function Event({ tenant, id }: { tenant: string; id: string }) {
  const { data, error } = useQuery({
    queryKey: ["event", tenant, id],
    queryFn: async () => await call<Detail>("GET", `/api/${tenant}/v1/inbox/${id}`),
    refetchInterval: 3_000,
  });
  if (data === undefined) return error === null ? <p>Loading…</p> : <Problem error={error} />;
  const operationId = data.operationId ?? data.request?.operationId ?? null;
  return (
    <>
      <h1>
        {data.type ?? "Event of an unknown type"} <State of={data.status} />
      </h1>
      <p>
        Received {moment(data.receivedAt)} by <code>{data.endpoint}</code>, event <code>{data.eventId}</code>
        {data.reason === null ? "" : `: ${spoken(data.reason)}`}.
      </p>
      {data.hint ? (
        <p className="warn">Only a hint: its sender is not proven, so the provider is asked first.</p>
      ) : null}
      {data.conflicting ? <p className="warn">Another body came under the same id.</p> : null}
      <p>
        About <code>{data.reference ?? "no request"}</code>
        {data.request?.status == null ? "" : `, which is ${data.request.status}`}
        {operationId === null ? null : (
          <>
            , of operation <Link to={`/t/${tenant}/operations/${operationId}`}>{operationId}</Link>
          </>
        )}
        .
      </p>
      <p>
        Replayed now it {replayWords(data.replay.outcome)}
        {data.replay.status === null ? "" : `: the request becomes ${data.replay.status}`}
        {data.replay.reason === null ? "" : ` (${spoken(data.replay.reason)})`}.
        {data.replay.evidenceFor === null ? null : (
          <>
            {" "}
            It is evidence for operation{" "}
            <Link to={`/t/${tenant}/operations/${data.replay.evidenceFor}`}>{data.replay.evidenceFor}</Link>.
          </>
        )}
      </p>
      <Problem error={error} />
      {data.tickets.map((each) => (
        <p className="note" key={each.ticketId}>
          Ticket: <Link to={`/t/${tenant}/tickets/${each.ticketId}`}>{spoken(each.kind)}</Link>, {spoken(each.reason)};{" "}
          {each.resolvedAt === null ? `${each.owner}, due ${moment(each.dueAt)}` : `closed ${moment(each.resolvedAt)}`}.
        </p>
      ))}
      {data.discardedBy === null ? null : (
        <p className="note">
          Discarded by {data.discardedBy}: {data.discardReason}
        </p>
      )}
      <Act tenant={tenant} event={data} />
    </>
  );
}

function Act({ tenant, event }: { tenant: string; event: Detail }) {
  const mayAct = useMayAct();
  const { operator } = useSession();
  const client = useQueryClient();
  const [why, setWhy] = useState("");
  const [told, setTold] = useState("");
  const { busy, error, run } = useAct();
  if (!mayAct) return <p className="note">An operator replays and discards.</p>;
  const act = async (what: "replay" | "discard"): Promise<void> => {
    const path = `/api/${tenant}/v1/inbox/${event.inboxId}/${what}`;
    if (what === "replay") {
      const { replayed, reason } = await call<InboxReplayAnswer>("POST", path, { who: operator });
      setTold(replayed ? "Replayed: it is due again." : `Not replayed: ${spoken(reason ?? "")}.`);
    } else {
      await call("POST", path, { who: operator, why });
      setTold("Discarded.");
    }
    await client.invalidateQueries({ queryKey: ["event"] });
  };
  return (
    <>
      <div className="row">
        <button
          type="button"
          className="main"
          data-testid="replay"
          disabled={busy}
          onClick={() => void run(() => act("replay"))}
        >
          Replay
        </button>
      </div>
      <form
        className="row"
        onSubmit={(submit) => {
          submit.preventDefault();
          void run(() => act("discard"));
        }}
      >
        <label className="grow">
          Why discard it? (kept with the event)
          <input required maxLength={500} value={why} onChange={({ target }) => setWhy(target.value)} />
        </label>
        <button type="submit" disabled={busy}>
          Discard for good
        </button>
      </form>
      {told === "" ? null : (
        <p className="note" role="status" data-testid="replay-result">
          {told}
        </p>
      )}
      <Problem error={error} />
    </>
  );
}
