import type { inboxPage } from "@countersign/client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { z } from "zod";
import { call, query } from "../api.js";
import { More, Problem, Table } from "../parts/common.js";
import { useMayAct, useSession } from "../session.js";
import { moment, replayWords, spoken } from "../words.js";

type Page = z.output<typeof inboxPage>;
interface Bulk {
  dryRun: boolean;
  counts: Record<string, number>;
  more: boolean;
}

/** Events that wait for a person, and all of them replayed at once. */
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
        {data?.data.length === 0 ? (
          <tr>
            <td colSpan={7} className="dim">
              None.
            </td>
          </tr>
        ) : null}
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
      <More cursor={data?.nextCursor} next={setCursor} />
    </>
  );
}

function ReplayAll({ tenant, status }: { tenant: string; status: string }) {
  const mayAct = useMayAct();
  const { operator } = useSession();
  const client = useQueryClient();
  const [answer, setAnswer] = useState<Bulk>();
  const [error, setError] = useState<unknown>();
  if (!mayAct) return <p className="note">An operator replays and discards.</p>;
  const run = async (dryRun: boolean): Promise<void> => {
    try {
      const body = { who: operator, dryRun, status: [status], limit: 500 };
      setAnswer(await call<Bulk>("POST", `/api/${tenant}/v1/inbox/replay`, body));
      setError(undefined);
      if (!dryRun) await client.invalidateQueries({ queryKey: ["inbox"] });
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <div className="note">
      <div className="row">
        <button type="button" onClick={() => void run(true)}>
          What would a replay of all do?
        </button>
        {answer?.dryRun === true ? (
          <button type="button" className="main" onClick={() => void run(false)}>
            Replay them{answer.more ? " (the first 500)" : ""}
          </button>
        ) : null}
      </div>
      {answer === undefined ? null : (
        <ul role="status">
          {Object.entries(answer.counts).map(([outcome, count]) => (
            <li key={outcome}>
              {count}: {replayWords(outcome)}
            </li>
          ))}
        </ul>
      )}
      <Problem error={error} />
    </div>
  );
}
