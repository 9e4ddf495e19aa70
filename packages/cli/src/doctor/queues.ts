import { type QueueStanding, queueStandings, type RedisFacts, readRedisFacts } from "@countersign/queue";
import { seconds } from "../age.js";
import type { CliIo } from "../io.js";
import { withQueues } from "../with-queues.js";
import { clockFinding } from "./clock.js";
import { type Finding, finding } from "./finding.js";

/** A job that waits longer than this is taken by nobody, ms. The ledger hands it over again, to the same queue. */
const oldMs = 60_000;

/** Redis, where there is one, and every queue. */
export async function lookAtQueues(io: CliIo, redisUrl: string | undefined): Promise<Finding[]> {
  const found: Finding[] = [];
  if (redisUrl === undefined) found.push(finding("ok", "redis", "none is set: the queues run on PostgreSQL"));
  else {
    const facts = await readRedisFacts(redisUrl);
    if (facts === undefined) {
      const remedy = "check REDIS_URL and that the server runs; nothing is lost, but nothing is handed over either";
      return [finding("fail", "redis", "it can't be reached", { remedy })];
    }
    found.push(...redisFindings(facts));
  }
  const standings = await withQueues(io, (queues) => queueStandings(queues));
  return [...found, ...standings.map(queueFinding)];
}

function redisFindings({ policy, version, clock }: RedisFacts): Finding[] {
  return [
    finding("ok", "redis", `version ${version ?? "hidden by its host"}`),
    policyFinding(policy),
    ...(clock === undefined ? [] : [clockFinding("redis-clock", "Redis", clock.theirsMs - clock.oursMs)]),
  ];
}

function policyFinding(policy: RedisFacts["policy"]): Finding {
  if (policy.verdict === "ok") return finding("ok", "redis-policy", `maxmemory-policy is ${policy.policy}`);
  if (policy.verdict === "evicting") {
    return finding("fail", "redis-policy", `it may drop jobs and locks: maxmemory-policy is ${policy.policy}`, {
      remedy: "CONFIG SET maxmemory-policy noeviction, and in its configuration",
    });
  }
  return finding("warn", "redis-policy", "its host hides maxmemory-policy", {
    remedy: "make sure that it is noeviction",
  });
}

function queueFinding({ queue, paused, jobs, oldestWaitingMs }: QueueStanding): Finding {
  const waits =
    oldestWaitingMs === undefined
      ? "none waits"
      : `${jobs.waiting} wait, the oldest for ${seconds(oldestWaitingMs / 1_000)}`;
  const subject = queue;
  if (paused) {
    return finding("warn", "queue", `paused; ${waits}`, { subject, remedy: `countersign queues resume ${queue}` });
  }
  if (oldestWaitingMs !== undefined && oldestWaitingMs > oldMs) {
    const remedy = "add workers of this queue, or see what holds them up";
    return finding("warn", "queue", waits, { subject, remedy });
  }
  return finding("ok", "queue", waits, { subject });
}
