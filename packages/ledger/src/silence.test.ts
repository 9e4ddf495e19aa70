import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  beat,
  createConnection,
  createWebhookEndpoint,
  ingressKind,
  noteIngressGap,
  openAgedTickets,
  recordDelivery,
  reportSilence,
} from "./index.js";
import { planSend, startTestLedger, type TestLedger } from "./testing.js";
import { claimForSubmit, confirm } from "./transitions.js";

let test: TestLedger;
let endpointId = "";
beforeAll(async () => {
  test = await startTestLedger();
});
afterAll(async () => {
  await test.stop();
});
const main = { tenantId: "acme", connectionId: "main" };
beforeEach(async () => {
  await test.ledger.sql`UPDATE webhook_endpoint SET disabled_at = now()`;
  await test.ledger
    .sql`UPDATE ticket SET resolved_at = now(), resolved_by = 'test', resolution = 'test' WHERE resolved_at IS NULL`;
  ({ endpointId } = await createWebhookEndpoint(test.ledger, { ...main, scheme: "elchi", secret: "whsec_x" }));
});

const tickets = async () =>
  (
    await test.ledger.sql<{ reason: string; owner: string; subject: string }[]>`
      SELECT reason, owner, subject_id AS subject FROM ticket WHERE kind = 'endpoint-silent' AND resolved_at IS NULL`
  ).map(({ reason, owner, subject }) => ({ reason, owner, own: subject === endpointId }));
const ticket = (reason: string) => [{ reason, owner: "contracts-team", own: true }];

/** The endpoint has stood, and has last been heard of, so long ago. */
const heard = (minutes: number | null) => test.ledger.sql`
  UPDATE webhook_endpoint SET created_at = now() - interval '1 day',
    last_verified_at = CASE WHEN ${minutes !== null} THEN now() - make_interval(mins => ${minutes ?? 0}) END
  WHERE endpoint_id = ${endpointId}`;

/** A SEND that went out `minutes` ago. Ids carry their time. */
async function sent(minutes: number): Promise<string> {
  const id = await planSend(test);
  const owner = randomUUID();
  const base = {
    tenantId: "acme",
    operationId: id,
    owner,
    leaseMs: 60_000,
    evidenceNo: 0,
    observation: { kind: "accepted" },
    actor: "test",
    reason: "test",
  };
  const providerRef = `sr_${randomUUID()}`;
  await claimForSubmit(test.ledger, [base]);
  await confirm(test.ledger, [{ ...base, providerRef, signingStatus: "SENT" }]);
  if (minutes > 0) {
    // The guard forbids another id, so the clock of the threshold is moved instead.
    await test.ledger.sql`
      UPDATE tenant SET thresholds = thresholds || jsonb_build_object('age-endpoint', ${0}::int) WHERE tenant_id = 'acme'`;
  }
  return providerRef;
}
const askedAbout = async (providerRef: string) =>
  (
    await test.ledger.sql<{ at: number }[]>`
    SELECT EXTRACT(EPOCH FROM asked_at)::int AS at FROM contract_signing WHERE provider_ref = ${providerRef}`
  )[0]?.at === 0;
const verified = () =>
  recordDelivery(test.ledger, { ...main, endpointId, providerEventId: randomUUID(), body: randomBytes(8) });

it("an endpoint that has been silent since a request went out has an owned ticket, and its requests are asked about", async () => {
  await heard(5);
  const ref = await sent(1);
  await openAgedTickets(test.ledger);
  expect(await tickets()).toEqual(ticket("silent"));
  expect(await askedAbout(ref)).toBe(true);
  await openAgedTickets(test.ledger);
  expect(await tickets()).toHaveLength(1);
  // It delivers again: what the ticket waited for.
  await verified();
  await openAgedTickets(test.ledger);
  expect(await tickets()).toEqual([]);
});

it("no request went out since, or the threshold has not passed: silence is nothing to report", async () => {
  await heard(0);
  await openAgedTickets(test.ledger);
  expect(await tickets()).toEqual([]);
  await test.ledger
    .sql`UPDATE tenant SET thresholds = thresholds || '{"age-endpoint":60}'::jsonb WHERE tenant_id = 'acme'`;
  await heard(59);
  await sent(0);
  await openAgedTickets(test.ledger);
  expect(await tickets()).toEqual([]);
});

it("a second endpoint of the same connection that delivers speaks for both", async () => {
  await heard(5);
  await sent(1);
  const old = endpointId;
  ({ endpointId } = await createWebhookEndpoint(test.ledger, { ...main, scheme: "elchi", secret: "whsec_y" }));
  await verified();
  await openAgedTickets(test.ledger);
  expect(await tickets()).toEqual([]);
  expect(old).not.toBe(endpointId);
});

it("a change that a poll found and no event told becomes a ticket; an event in time clears the suspicion", async () => {
  const suspect = () => test.ledger.sql`
    UPDATE webhook_endpoint SET suspect_since = now() - interval '2 minutes', last_verified_at = now() WHERE endpoint_id = ${endpointId}`;
  await test.ledger
    .sql`UPDATE tenant SET thresholds = thresholds || '{"age-endpoint":1}'::jsonb WHERE tenant_id = 'acme'`;
  await suspect();
  await verified();
  await openAgedTickets(test.ledger);
  expect(await tickets()).toEqual([]);
  await suspect();
  await openAgedTickets(test.ledger);
  expect(await tickets()).toEqual(ticket("events-missed"));
});

it("no ingress for too long: every endpoint that stood before has its ticket and its catch-up, once", async () => {
  const ref = await sent(0);
  await heard(0);
  expect(await noteIngressGap(test.ledger, 60_000)).toBeUndefined();
  const processId = randomUUID();
  await beat(test.ledger, { processId, kind: ingressKind, host: "h", pid: 1 });
  expect(await noteIngressGap(test.ledger, 60_000)).toBeUndefined();
  await test.ledger
    .sql`UPDATE worker_process SET heartbeat_at = now() - interval '2 days' WHERE process_id = ${processId}`;
  await test.ledger
    .sql`UPDATE webhook_endpoint SET created_at = now() - interval '3 days' WHERE endpoint_id = ${endpointId}`;
  // The last of its kind is kept, however old.
  await openAgedTickets(test.ledger);
  expect(await noteIngressGap(test.ledger, 60_000)).toBeGreaterThan(60_000);
  expect(await tickets()).toEqual(ticket("ingress-outage"));
  expect(await askedAbout(ref)).toBe(true);
  // Only a person closes it: the sender's own console must be looked at.
  await test.ledger
    .sql`UPDATE webhook_endpoint SET last_verified_at = now() + interval '1 second' WHERE endpoint_id = ${endpointId}`;
  await openAgedTickets(test.ledger);
  expect(await tickets()).toEqual(ticket("ingress-outage"));
});

it("one ticket per endpoint, and only its own connection's requests are asked about", async () => {
  await createConnection(test.ledger, {
    tenantId: "acme",
    connectionId: `c${Date.now()}`,
    provider: "wesign",
    baseUrl: "http://127.0.0.1:9",
    credential: "x",
  });
  const ref = await sent(0);
  const silence = { ...main, endpointId, reason: "refusing", details: { refused: 10 } } as const;
  expect(await reportSilence(test.ledger.sql, { ...silence, connectionId: "another" })).toBe(true);
  expect(await askedAbout(ref)).toBe(false);
  expect(await reportSilence(test.ledger.sql, silence)).toBe(false);
  expect(await askedAbout(ref)).toBe(true);
});

it("events that nobody applies: one ticket for the connection, closed once they are applied", async () => {
  await verified();
  await test.ledger
    .sql`UPDATE tenant SET thresholds = thresholds || '{"age-received":0}'::jsonb WHERE tenant_id = 'acme'`;
  const aged = () => test.ledger.sql`
    SELECT 1 FROM ticket WHERE kind = 'aged' AND reason = 'events-not-applied' AND subject_id = 'main' AND resolved_at IS NULL`;
  await openAgedTickets(test.ledger);
  await openAgedTickets(test.ledger);
  expect(await aged()).toHaveLength(1);
  await test.ledger.sql`UPDATE webhook_inbox SET status = 'NO_OP', due_at = NULL WHERE status = 'RECEIVED'`;
  await openAgedTickets(test.ledger);
  expect(await aged()).toHaveLength(0);
});
