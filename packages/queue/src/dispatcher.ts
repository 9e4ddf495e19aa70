import type { Queues } from "./connection.js";
import { QueueUnavailableError } from "./errors.js";
import { type Dispatch, type JobData, jobData, jobId, type QueueName } from "./queues.js";
import { producerTimeoutMs } from "./redis-clients.js";
import { requireStore } from "./require-store.js";
import { traceOfJob } from "./telemetry.js";
import { within } from "./timeout.js";

/** What became of a batch. Failed jobs need nothing from the caller: their rows are due and will be dispatched again. */
export interface DispatchResult {
  readonly added: number;
  readonly failed: number;
}

/** Jobs per round trip: large enough to amortise it, small enough to leave Redis to others in between. */
const batchSize = 250;

/**
 * Hands jobs to their queues, each queue's in one pipelined write. Never throws, and ends within about a second per
 * batch: while the store is away everything counts as failed. Adding a job whose id is still there changes nothing.
 * @param timeoutMs longest wait per batch
 */
export async function dispatch(
  queues: Queues,
  jobs: readonly Dispatch[],
  timeoutMs: number = producerTimeoutMs,
): Promise<DispatchResult> {
  let added = 0;
  for (const [name, ofQueue] of byQueue(jobs)) {
    const valid = ofQueue.flatMap(prepare);
    for (const batch of batches(valid)) {
      try {
        await addBatch(queues, name, batch, timeoutMs);
        added += batch.length;
      } catch (error) {
        queues.report(error);
        // The rest of this queue would wait just as long, one batch after the other.
        break;
      }
    }
  }
  return { added, failed: jobs.length - added };
}

interface PreparedJob {
  readonly name: string;
  readonly data: JobData;
  readonly opts: { readonly jobId: string } & ReturnType<typeof traceOfJob>;
}

function prepare({ generation, tenantId, kind, subjectId }: Dispatch): PreparedJob[] {
  const data = jobData.safeParse({ tenantId, kind, subjectId });
  if (!data.success) return [];
  return [{ name: kind, data: data.data, opts: { jobId: jobId(data.data, generation), ...traceOfJob(subjectId) } }];
}

async function addBatch(
  queues: Queues,
  name: QueueName,
  batch: readonly PreparedJob[],
  timeoutMs: number,
): Promise<void> {
  requireStore(queues);
  await within(timeoutMs, queues.queue(name).addBulk([...batch]), () => abandonConnection(queues));
}

function abandonConnection({ store }: Queues): void {
  // Nothing answers although the connection stands: a new one drops what is buffered for the old.
  if (store.kind === "redis") store.client.disconnect(true);
}

/**
 * Whether each job still waits or runs, so that nobody need add it again: one pipelined look per queue. False means gone,
 * completed or failed: the caller raises the generation before it dispatches again.
 * @throws QueueUnavailableError when the store can't be asked: then nothing is known
 */
export async function jobsAlive(
  queues: Queues,
  jobs: readonly Dispatch[],
  timeoutMs: number = producerTimeoutMs,
): Promise<boolean[]> {
  const alive = new Set<string>();
  for (const [name, ofQueue] of byQueue(jobs)) {
    const ids = [...new Set(ofQueue.map((job) => jobId(job, job.generation)))];
    for (const batch of batches(ids)) {
      for (const id of await lookAt(queues, name, batch, timeoutMs)) alive.add(`${name} ${id}`);
    }
  }
  return jobs.map((job) => alive.has(`${job.queue} ${jobId(job, job.generation)}`));
}

async function lookAt(queues: Queues, name: QueueName, ids: readonly string[], timeoutMs: number): Promise<string[]> {
  requireStore(queues);
  const look = queues.store.kind === "redis" ? aliveOnRedis(queues, name, ids) : aliveOnPostgres(queues, name, ids);
  try {
    return await within(timeoutMs, look, () => abandonConnection(queues));
  } catch (error) {
    if (error instanceof QueueUnavailableError) throw error;
    throw new QueueUnavailableError("queue-look", "the queue's store did not answer", { cause: error });
  }
}

/** Up to this many waiting jobs a job is looked for in the list itself; a search through a longer one costs too much. */
const exactBacklog = 1_000;

/**
 * The job's own record says whether it has finished. A record whose id is in no list would wait for ever (an eviction
 * took the list), so where the lists are short they are searched as well; where they are long, that waits until they
 * are short again.
 */
async function aliveOnRedis(queues: Queues, name: QueueName, ids: readonly string[]): Promise<string[]> {
  if (queues.store.kind !== "redis") return [];
  const { client } = queues.store;
  const { toKey } = queues.queue(name);
  const lists = ["active", "wait", "paused"].map(toKey);
  const sets = ["delayed", "prioritized"].map(toKey);

  const first = client.pipeline();
  for (const key of lists) first.llen(key);
  for (const id of ids) first.hmget(toKey(id), "timestamp", "finishedOn");
  const answers = results(await first.exec());
  const backlog = answers.slice(0, lists.length).reduce<number>((sum, length) => sum + Number(length), 0);
  const candidates = ids.filter((_, index) => {
    const record: unknown = answers[lists.length + index];
    return Array.isArray(record) && record[0] !== null && record[1] === null;
  });
  if (candidates.length === 0 || backlog > exactBacklog) return candidates;

  const second = client.pipeline();
  for (const id of candidates) {
    for (const key of lists) second.lpos(key, id);
    for (const key of sets) second.zscore(key, id);
  }
  const places = results(await second.exec());
  const each = lists.length + sets.length;
  return candidates.filter((_, index) =>
    places.slice(index * each, (index + 1) * each).some((place) => place !== null),
  );
}

function results(answers: readonly (readonly [Error | null, unknown])[] | null): unknown[] {
  if (answers === null) throw new QueueUnavailableError("redis-unreachable", "Redis dropped the look");
  return answers.map(([error, value]) => {
    if (error !== null) throw error;
    return value;
  });
}

async function aliveOnPostgres(queues: Queues, name: QueueName, ids: readonly string[]): Promise<string[]> {
  if (queues.store.kind !== "postgres") return [];
  const { rows } = await queues.store.pool.query<{ id: string }>(
    "SELECT id FROM job WHERE queue = $1 AND id = ANY($2) AND state NOT IN ('completed', 'failed')",
    [name, [...ids]],
  );
  return rows.map(({ id }) => id);
}

function byQueue(jobs: readonly Dispatch[]): Map<QueueName, Dispatch[]> {
  const grouped = new Map<QueueName, Dispatch[]>();
  for (const job of jobs) {
    const list = grouped.get(job.queue);
    if (list === undefined) grouped.set(job.queue, [job]);
    else list.push(job);
  }
  return grouped;
}

function* batches<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += batchSize) yield items.slice(start, start + batchSize);
}
