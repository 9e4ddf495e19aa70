import { randomBytes } from "node:crypto";
import { Ledger } from "@countersign/ledger";
import { openQueues } from "@countersign/queue";
import { createLogger, createMetrics } from "@countersign/runtime";
import { serveLedgerGauges } from "@countersign/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { metricsInCode, metricsInDocs } from "./metrics-in-code.js";
import { RealFleet, until } from "./real-processes.js";

it("docs/metrics.md describes every metric that the code registers, with its type and labels, and no other", async () => {
  const inCode = await metricsInCode();
  expect(inCode.length).toBeGreaterThan(30);
  expect(await metricsInDocs()).toEqual(inCode);
});

describe("what real processes say", () => {
  let fleet: RealFleet;
  beforeAll(async () => {
    fleet = await RealFleet.start();
  });
  afterAll(() => fleet?.stop());

  const scrape = async (url: string): Promise<string> => (await fetch(`${url}/metrics`)).text();

  it("counts transitions where they are made, and the reconcile worker tells the ledger", {
    timeout: 120_000,
  }, async () => {
    const submit = await fleet.spawn("submit-worker");
    const reconcile = await fleet.spawn("reconcile-worker");
    const ids = await fleet.send(5);
    await fleet.allIn(ids, "CONFIRMED", 60_000);
    // A slow machine may need more than one attempt: what counts is what the history says.
    const [history] = await fleet.scene.ledger.sql<{ claims: number }[]>`
      SELECT count(*)::int AS claims FROM operation_event WHERE from_state = 'PLANNED' AND to_state = 'IN_FLIGHT'`;
    const claims = `countersign_transitions_total{edge="claimForSubmit",process="submit-worker"} ${history?.claims}\n`;
    const sent = await until(
      () => scrape(submit.url),
      (text) => text.includes(claims),
    );
    expect(sent).toMatch(/^countersign_near_misses_total\{kind="woke-after-lease",process="submit-worker"\} \d+$/m);

    const ledger = await scrape(reconcile.url);
    expect(ledger).toContain('countersign_ledger_read_ok{process="reconcile-worker"} 1');
    expect(ledger).toContain('countersign_unknown_oldest_seconds{process="reconcile-worker"} 0');
    expect(ledger).toMatch(/^countersign_processes\{kind="submit-worker",process="reconcile-worker"\} \d+$/m);
    expect(ledger).toMatch(
      /^countersign_queue_jobs\{queue="submit",state="waiting",process="reconcile-worker"\} \d+$/m,
    );

    const documented = new Set((await metricsInDocs()).map(({ name }) => name));
    const exposed = [...`${sent}\n${ledger}`.matchAll(/^# TYPE (countersign_\w+)/gm)].map(([, name = ""]) => name);
    expect(exposed.filter((name) => !documented.has(name))).toEqual([]);
  });
});

it("where the database and the queues are away, a scrape answers with a gap instead of old or false numbers", async () => {
  const nowhere = "postgres://nobody@127.0.0.1:1/nothing";
  const logger = createLogger({ name: "test", level: "silent" });
  const ledger = new Ledger({ databaseUrl: nowhere, encryptionKey: randomBytes(32) });
  const queues = openQueues({ databaseUrl: nowhere, logger });
  const metrics = createMetrics("test");
  serveLedgerGauges({ ledger, queues, metrics, logger });
  const { body } = await metrics.render();
  expect(body).toContain('countersign_ledger_read_ok{process="test"} 0');
  const samples = [...body.matchAll(/^(countersign_\w+)/gm)].map(([, name]) => name);
  expect(samples).toEqual(["countersign_ledger_read_ok"]);
  await queues.close();
  await ledger.close(0);
});
