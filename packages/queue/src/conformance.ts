import { createLogger } from "@countersign/runtime";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Queues, redisPrefix } from "./connection.js";
import { queueDepths } from "./depths.js";
import { dispatch, jobsAlive } from "./dispatcher.js";
import { pauseQueue, queueStandings, resumeQueue } from "./queue-standing.js";
import { type Dispatch, type JobData, jobData, jobId } from "./queues.js";
import { createWorker, type JobHandler, type QueueWorker } from "./worker.js";

/** A store under test. */
export interface StoreUnderTest {
  open(): Queues;
  /** Empties every queue. */
  reset(): Promise<void>;
  stop(): Promise<void>;
}

/** A logger whose lines the test may read. */
export function captureLog() {
  const lines: string[] = [];
  return { lines, logger: createLogger({ name: "test", destination: { write: (line) => void lines.push(line) } }) };
}

/** One job for the tests, on `submit`. */
export function job(subjectId: string, generation = 0, tenantId = "acme"): Dispatch {
  return { queue: "submit", tenantId, kind: "operation", subjectId, generation };
}

/** Collects what workers take and lets a test wait for the n-th, without sleeping. */
export function collector() {
  const taken: JobData[] = [];
  const waiting = new Set<() => void>();
  return {
    taken,
    subjects: () => taken.map(({ subjectId }) => subjectId),
    take(data: JobData): void {
      taken.push(data);
      for (const look of waiting) look();
    },
    count: (n: number) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (taken.length < n) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
}

/** What every store must do, whichever it is. */
export function describeStore(name: string, start: () => Promise<StoreUnderTest>): void {
  describe(`queues on ${name}`, () => {
    let store: StoreUnderTest;
    let queues: Queues;
    const workers: QueueWorker[] = [];
    const log = captureLog();

    beforeAll(async () => {
      store = await start();
      queues = store.open();
      expect(await queues.ready(5_000)).toBe(true);
    });
    beforeEach(() => store.reset());
    afterEach(async () => {
      await Promise.all(workers.splice(0).map((worker) => worker.close({ graceMs: 2_000 })));
    });
    afterAll(async () => {
      await queues?.close();
      await store?.stop();
    });

    async function work(handler: JobHandler, concurrency = 4): Promise<QueueWorker> {
      const worker = await createWorker({ queues, queue: "submit", concurrency, handler, logger: log.logger });
      workers.push(worker);
      return worker;
    }

    const state = (subject: Dispatch) => queues.queue("submit").getJobState(jobId(subject, subject.generation));

    it("hands a dispatched job to a worker with its data and nothing else", async () => {
      const seen = collector();
      await work(async (data) => seen.take(data));
      expect(await dispatch(queues, [job("op-1")])).toEqual({ added: 1, failed: 0 });
      await seen.count(1);
      expect(seen.taken).toEqual([{ tenantId: "acme", kind: "operation", subjectId: "op-1" }]);
    });

    it("adds a job once while it waits, however often it is dispatched", async () => {
      for (let i = 0; i < 3; i += 1) await dispatch(queues, [job("op-1"), job("op-2")]);
      expect(await queues.queue("submit").getWaitingCount()).toBe(2);
    });

    it("says how many jobs each queue holds, by state", async () => {
      await dispatch(queues, [job("op-1"), job("op-2"), { ...job("op-3"), queue: "reconcile" }]);
      const held = (await queueDepths(queues)).filter(({ count }) => count > 0);
      expect(held).toEqual([
        { queue: "submit", state: "waiting", count: 2 },
        { queue: "reconcile", state: "waiting", count: 1 },
      ]);
    });

    it("says how every queue stands; a paused one keeps its jobs, with the age of the oldest, until it is resumed", async () => {
      const seen = collector();
      await pauseQueue(queues, "submit");
      await dispatch(queues, [job("op-1"), job("op-2")]);
      const [submit, reconcile] = await queueStandings(queues);
      const jobs = { waiting: 2, active: 0, delayed: 0, failed: 0 };
      expect(submit).toEqual({ queue: "submit", paused: true, jobs, oldestWaitingMs: expect.any(Number) });
      expect(reconcile).toEqual({ queue: "reconcile", paused: false, jobs: { ...jobs, waiting: 0 } });
      expect(await jobsAlive(queues, [job("op-1")])).toEqual([true]);
      await work(async (data) => seen.take(data));
      await resumeQueue(queues, "submit");
      await seen.count(2);
      expect((await queueStandings(queues))[0]?.paused).toBe(false);
    });

    it("runs a subject again under a new generation after the former job finished", async () => {
      const seen = collector();
      const worker = await work(async (data) => seen.take(data));
      await dispatch(queues, [job("op-1")]);
      await seen.count(1);
      await expect.poll(() => jobsAlive(queues, [job("op-1")])).toEqual([false]);
      await dispatch(queues, [job("op-1", 1)]);
      await seen.count(2);
      expect(worker.healthy()).toBe(true);
      expect(seen.subjects()).toEqual(["op-1", "op-1"]);
    });

    it("never runs a failed job again, and a kept failed job doesn't block its successor", async () => {
      const seen = collector();
      await work(async (data) => {
        seen.take(data);
        if (seen.taken.length === 1) throw new TypeError("planted anna@example.com");
      });
      await dispatch(queues, [job("op-1")]);
      await expect.poll(() => state(job("op-1"))).toBe("failed");
      expect(seen.taken).toHaveLength(1);
      expect(await jobsAlive(queues, [job("op-1")])).toEqual([false]);
      await dispatch(queues, [job("op-1", 1)]);
      await seen.count(2);
      const failed = await queues.queue("submit").getJob(jobId(job("op-1"), 0));
      expect(failed?.failedReason).toBe("TypeError");
      expect(JSON.stringify([failed?.asJSON(), log.lines])).not.toContain("planted");
    });

    it("tells waiting and running jobs from finished and unknown ones in one look", async () => {
      const held = deferred();
      const seen = collector();
      await work(async (data) => {
        seen.take(data);
        if (data.subjectId === "running") await held.promise;
      }, 1);
      await dispatch(queues, [job("finished"), job("running"), job("waiting")]);
      await seen.count(2);
      const looked = [job("finished"), job("running"), job("waiting"), job("waiting", 1), job("never")];
      expect(await jobsAlive(queues, looked)).toEqual([false, true, true, false, false]);
      held.resolve(undefined);
      await seen.count(3);
    });

    it("dispatches whatever a subject is called, each under its own id", async () => {
      const names = ["acme:eu", "42", "a/b", "\u{1f4dd}", "x".repeat(300), " ", "0", "0:1", "a:b:c", "{a}"];
      const jobs = names.flatMap((tenant) => names.map((subject) => job(subject, 0, tenant)));
      expect(await dispatch(queues, jobs)).toEqual({ added: jobs.length, failed: 0 });
      expect(await queues.queue("submit").getWaitingCount()).toBe(jobs.length);
    });

    it("counts a job that nobody could read as failed, and adds the others", async () => {
      expect(await dispatch(queues, [job(""), job("op-1")])).toEqual({ added: 1, failed: 1 });
    });

    it("fails a job with strange data once, without handing it to the handler", async () => {
      const seen = collector();
      await work(async (data) => seen.take(data));
      const strange = { tenantId: "acme", kind: "operation", subjectId: "op-1", email: "anna@example.com" };
      await queues.queue("submit").add("operation", jobData.loose().parse(strange), { jobId: "strange" });
      await expect.poll(() => queues.queue("submit").getJobState("strange")).toBe("failed");
      expect(seen.taken).toEqual([]);
      expect(log.lines.join("")).not.toContain("anna@");
    });

    it("is healthy once it has asked its queue, and waits for running jobs when it closes", async () => {
      const held = deferred();
      const seen = collector();
      const worker = await work(async (data) => {
        seen.take(data);
        await held.promise;
      });
      await expect.poll(() => worker.healthy()).toBe(true);
      await dispatch(queues, [job("op-1")]);
      await seen.count(1);
      expect(worker.active).toBe(1);
      const closing = worker.close({ graceMs: 5_000 });
      await dispatch(queues, [job("op-2")]);
      held.resolve(undefined);
      expect(await closing).toBe(true);
      expect(seen.subjects()).toEqual(["op-1"]);
      expect(await state(job("op-1"))).toBe("completed");
      expect(await state(job("op-2"))).toBe("waiting");
    });

    it("ends at its grace limit with work unfinished, and tells the handler", async () => {
      const seen = collector();
      const aborted = deferred();
      const worker = await work(async (data, { signal }) => {
        signal.addEventListener("abort", () => aborted.resolve(undefined));
        seen.take(data);
        await aborted.promise;
      });
      await dispatch(queues, [job("op-1")]);
      await seen.count(1);
      expect(await worker.close({ graceMs: 50 })).toBe(false);
      await aborted.promise;
    });

    it("keeps a bounded number of finished jobs", () => {
      expect(queues.queue("submit").defaultJobOptions).toMatchObject({
        attempts: 1,
        removeOnComplete: { count: 1_000 },
        removeOnFail: { count: 5_000 },
      });
      expect(redisPrefix).toMatch(/^\{.+\}$/);
    });
  });
}

/** A promise and its resolver. */
export function deferred() {
  let resolve: (value: undefined) => void = () => undefined;
  const promise = new Promise<undefined>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
