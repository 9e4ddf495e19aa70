import type { BulkReplayAnswer } from "@countersign/client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../act.js";
import { call } from "../api.js";
import { useMayAct, useSession } from "../session.js";
import { replayWords } from "../words.js";
import { Problem } from "./common.js";

const limit = 500;

/** A dry run over everything of one status; then exactly the events that it showed are replayed. */
export function ReplayAll({ tenant, status }: { tenant: string; status: string }) {
  const mayAct = useMayAct();
  const { operator } = useSession();
  const client = useQueryClient();
  const { busy, error, run } = useAct();
  const [answer, setAnswer] = useState<BulkReplayAnswer>();
  if (!mayAct) return <p className="note">An operator replays and discards.</p>;
  const ask = async (body: object): Promise<void> => {
    setAnswer(undefined);
    setAnswer(await call("POST", `/api/${tenant}/v1/inbox/replay`, { who: operator, limit, ...body }));
    await client.invalidateQueries({ queryKey: ["inbox"] });
  };
  const rows = answer?.dryRun === true ? answer.rows : [];
  const ids = rows.map(({ inboxId }) => inboxId);
  return (
    <div className="note">
      <div className="row">
        <button type="button" disabled={busy} onClick={() => void run(() => ask({ dryRun: true, status: [status] }))}>
          What would a replay of all do?
        </button>
        {ids.length === 0 ? null : (
          <button
            type="button"
            className="main"
            data-testid="replay-all"
            disabled={busy}
            onClick={() => void run(() => ask({ dryRun: false, ids }))}
          >
            Replay {ids.length}
          </button>
        )}
      </div>
      {answer === undefined ? null : (
        <ul role="status">
          {Object.entries(answer.counts).map(([outcome, count]) => (
            <li key={outcome}>
              {count}: {replayWords(outcome)}
            </li>
          ))}
          {answer.rows.length === 0 ? <li>There is nothing to replay.</li> : null}
          {answer.more ? <li>There are more: these are the oldest {limit}. Ask again afterwards.</li> : null}
        </ul>
      )}
      <Problem error={error} />
    </div>
  );
}
