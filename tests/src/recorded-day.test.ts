import { createHmac } from "node:crypto";
import { createWebhookEndpoint } from "@countersign/ledger";
import { Agent, request } from "undici";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type FleetProcess, RealFleet, until } from "./real-processes.js";
import { type Day, type DayDelivery, recordedDay } from "./recorded-day.js";

const deep = process.env.COUNTERSIGN_DEEP === "1";
const events = deep ? 50_000 : 5_000;
const secret = "whsec_recorded-day-0123456789abcdef";
const sideBySide = 50;

let fleet: RealFleet;
let ingress: FleetProcess;
let agent: Agent;
beforeAll(async () => {
  fleet = await RealFleet.start();
  ingress = await fleet.spawn("webhook-receiver", "ingress-main.js");
  for (let n = 0; n < 2; n += 1) await fleet.spawn("webhook-receiver", "apply-main.js");
  agent = new Agent({ connections: sideBySide });
});
afterAll(async () => {
  await agent.close();
  await fleet.stop();
});

/** A connection with an endpoint, and every request of the day but `later` bound to a SEND of it. */
async function connect(connectionId: string, day: Day, later: ReadonlySet<string>) {
  await fleet.scene.connect(connectionId, { verified: true });
  const { path } = await createWebhookEndpoint(fleet.scene.ledger, {
    tenantId: "acme",
    connectionId,
    scheme: "elchi",
    secret,
  });
  const { operationId } = await fleet.scene.planSend({ connectionId });
  const bind = async (refs: readonly string[]): Promise<void> => {
    await fleet.scene.ledger.sql`
      INSERT INTO contract_signing (tenant_id, connection_id, provider_ref, operation_id, status)
      SELECT 'acme', ${connectionId}, value, ${operationId}, 'SENT' FROM jsonb_array_elements_text(${JSON.stringify(refs)}::text::jsonb)
      ON CONFLICT (tenant_id, connection_id, provider_ref) DO UPDATE SET operation_id = EXCLUDED.operation_id, status = 'SENT'`;
  };
  await bind([...day.ends.keys()].filter((ref) => !later.has(ref)));
  return { path, bindTheRest: () => bind([...later]) };
}

async function deliver(path: string, { kind, body }: DayDelivery): Promise<number> {
  const at = Math.floor(Date.now() / 1_000);
  const key = kind === "bad-signature" ? "whsec_somebody-else" : secret;
  const mac = createHmac("sha256", key).update(`${at}.`).update(body).digest("hex");
  const answer = await request(`${ingress.url}${path}`, {
    method: "POST",
    dispatcher: agent,
    headers: { "content-type": "application/json", "elchi-signature": `t=${at},v1=${mac}` },
    body,
  });
  await answer.body.dump();
  return answer.statusCode;
}

/** Delivers all, so many at once, and counts the answers by kind of delivery. */
async function deliverAll(path: string, deliveries: readonly DayDelivery[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  let next = 0;
  const sender = async (): Promise<void> => {
    for (let delivery = deliveries[next++]; delivery !== undefined; delivery = deliveries[next++]) {
      const answer = `${delivery.kind} ${await deliver(path, delivery)}`;
      counts[answer] = (counts[answer] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: sideBySide }, sender));
  return counts;
}

const inbox = async (connectionId: string): Promise<Record<string, number>> => {
  const rows = await fleet.scene.ledger.sql<{ status: string; count: number }[]>`
    SELECT status, count(*)::int AS count FROM webhook_inbox WHERE connection_id = ${connectionId} GROUP BY status`;
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
};
const settled = (connectionId: string) =>
  until(
    () => inbox(connectionId),
    (rows) => rows.RECEIVED === undefined,
    deep ? 600_000 : 120_000,
  );
const endsOf = async (connectionId: string): Promise<Map<string, string>> => {
  const rows = await fleet.scene.ledger.sql<{ ref: string; status: string }[]>`
    SELECT provider_ref AS ref, status FROM contract_signing WHERE connection_id = ${connectionId}`;
  return new Map(rows.map(({ ref, status }) => [ref, status]));
};
/** Counts of one of the ingress's counters, by outcome; without those that never came. */
async function counted(name: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${ingress.url}/metrics`)).text();
  const lines = text.matchAll(new RegExp(`^${name}\\{outcome="([a-z-]+)"[^}]*\\} ([1-9]\\d*)$`, "gm"));
  return Object.fromEntries([...lines].map(([, outcome = "", count]) => [outcome, Number(count)]));
}
const sum = (counts: Record<string, number>): number =>
  Object.values(counts).reduce((total, count) => total + count, 0);

it(`a day of ${events} events, shuffled, repeated and disturbed, ends as the ordered day, and every delivery is accounted for`, async () => {
  const day = recordedDay("day", events);
  // One request in twenty is bound only after the whole day: its SEND was still unresolved.
  const refs = [...day.ends.keys()];
  const later = new Set(refs.filter((_, index) => index % 20 === 7));
  const of = (kind: DayDelivery["kind"]): number => day.disturbed.filter((each) => each.kind === kind).length;

  const ordered = await connect("ordered", day, new Set());
  expect(await deliverAll(ordered.path, day.ordered)).toEqual({ "event 200": day.ordered.length });
  const shuffled = await connect("shuffled", day, later);
  const answers = await deliverAll(shuffled.path, day.disturbed);
  expect(answers).toEqual({
    "event 200": day.ordered.length,
    "duplicate 200": of("duplicate"),
    "unknown-type 200": of("unknown-type"),
    "bad-signature 401": of("bad-signature"),
  });
  expect(sum(answers)).toBe(day.disturbed.length);

  await settled("shuffled");
  await shuffled.bindTheRest();
  const rows = await until(
    () => inbox("shuffled"),
    ({ RECEIVED, WAITING, QUARANTINED }) =>
      RECEIVED === undefined && WAITING === undefined && QUARANTINED === of("unknown-type"),
    120_000,
  );
  const inOrder = await settled("ordered");

  // Every distinct verified event is one row, and all of them add up.
  const { APPLIED = 0, NO_OP = 0, QUARANTINED = 0, ...others } = rows;
  expect(others).toEqual({});
  expect(APPLIED + NO_OP).toBe(day.ordered.length);
  expect(QUARANTINED).toBe(of("unknown-type"));
  expect((inOrder.APPLIED ?? 0) + (inOrder.NO_OP ?? 0)).toBe(day.ordered.length);
  expect(sum(inOrder)).toBe(day.ordered.length);

  // The ingress counted the same.
  const stored = 2 * day.ordered.length;
  expect(await counted("countersign_webhook_deliveries_total")).toEqual({
    stored,
    duplicate: of("duplicate"),
    quarantined: of("unknown-type"),
    unauthorized: of("bad-signature"),
  });
  expect(await counted("countersign_webhook_events_total")).toEqual({
    stored,
    duplicate: of("duplicate"),
    quarantined: of("unknown-type"),
  });

  expect(await endsOf("shuffled")).toEqual(new Map(day.ends));
  expect(await endsOf("ordered")).toEqual(new Map(day.ends));
  const conflicts = await fleet.scene.ledger.sql`SELECT 1 FROM ticket WHERE kind = 'signing-conflict'`;
  expect(conflicts).toHaveLength(0);
  process.stdout.write(
    `recorded day: ${day.disturbed.length} deliveries of ${refs.length} requests: ${JSON.stringify(rows)}, ${JSON.stringify(answers)}\n`,
  );
}, 1_200_000);
