import { ingressKind, type Ledger, type LedgerGauges, readGauges } from "@countersign/ledger";
import { seconds } from "../age.js";
import { type Finding, finding } from "./finding.js";

/** What every deployment runs; without one of them some work stands still. */
const workerKinds = ["submit-worker", "reconcile-worker", "webhook-apply"] as const;

/** The due loop comes by each second and moves what is due ahead: a lag of minutes means that none runs. Seconds. */
const lagWarn = 60;
const lagFail = 300;

/** Which processes live, and how far the outbox is behind. `endpoints`: whether webhooks should come in. */
export async function lookAtFleet(ledger: Ledger, endpoints: boolean): Promise<Finding[]> {
  const { processes, dueLag } = await readGauges(ledger);
  const kinds = [...workerKinds, ...(endpoints ? [ingressKind] : [])];
  return [...kinds.map((kind) => processFinding(kind, processes)), ...dueLag.map(lagFinding)];
}

function processFinding(kind: string, processes: LedgerGauges["processes"]): Finding {
  const found = processes.find((each) => each.kind === kind);
  const subject = kind;
  const remedy = `start a ${kind}, and see its log for why it does not run`;
  if (found === undefined) return finding("fail", "worker", "none has ever said that it lives", { subject, remedy });
  const last = `the last sign of life is ${seconds(found.silentSeconds)} old`;
  return found.alive === 0
    ? finding("fail", "worker", `none lives; ${last}`, { subject, remedy })
    : finding("ok", "worker", `${found.alive} live; ${last}`, { subject });
}

function lagFinding({ kind, seconds: lag }: LedgerGauges["dueLag"][number]): Finding {
  const subject = { operation: "operations", inbox: "inbox", work: "work items" }[kind];
  const what = lag === 0 ? "nothing is overdue" : `the oldest has been due for ${seconds(lag)}`;
  const remedy = "no due loop comes by: see that workers run, and their check due-loop at /readyz";
  if (lag > lagFail) return finding("fail", "outbox", what, { subject, remedy });
  return lag > lagWarn
    ? finding("warn", "outbox", what, { subject, remedy })
    : finding("ok", "outbox", what, { subject });
}
