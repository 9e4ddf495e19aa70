import { createHmac, randomUUID } from "node:crypto";
import { createWebhookEndpoint, listTickets, type SigningStatus } from "@countersign/ledger";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type FleetProcess, pause, RealFleet, until } from "./real-processes.js";

/** Silence is not peace: what no event tells is asked for. */
const secret = "whsec_missing-events-0123456789";
let fleet: RealFleet;
let reconciler: FleetProcess;
beforeAll(async () => {
  fleet = await RealFleet.start();
  await fleet.spawn("submit-worker");
  reconciler = await fleet.spawn("reconcile-worker", "main.js", { SIGNING_POLL_MS: "400" });
});
afterAll(async () => {
  await fleet.stop();
});

const statusOf = async (ref: string): Promise<SigningStatus | null | undefined> =>
  (
    await fleet.scene.ledger.sql<{ status: SigningStatus | null }[]>`
      SELECT status FROM contract_signing WHERE provider_ref = ${ref}`
  )[0]?.status;
const becomes = (ref: string, status: SigningStatus) =>
  until(
    () => statusOf(ref),
    (seen) => seen === status,
  );
async function confirmed(): Promise<{ id: string; ref: string }> {
  const [id = ""] = await fleet.send(1);
  await fleet.allIn([id], "CONFIRMED");
  const { providerRef } = await fleet.scene.operation(id);
  return { id, ref: providerRef ?? "" };
}
const ownedTickets = async () =>
  (await listTickets(fleet.scene.ledger, "acme"))
    .filter((each) => each.kind === "endpoint-silent")
    .map(({ reason, owner, subjectId }) => ({ reason, owner, subjectId }));
const reads = (id: string): number => fleet.scene.calls(id).read ?? 0;

it("without any event a request is followed to its end, and then left alone", async () => {
  const { id, ref } = await confirmed();
  for (const [word, status] of [
    ["viewed", "VIEWED"],
    ["signed", "PARTIALLY_SIGNED"],
    ["completed", "COMPLETED"],
  ] as const) {
    fleet.scene.simulator.advance(ref, word);
    await becomes(ref, status);
  }
  const after = reads(id);
  await pause(1_500);
  expect(reads(id)).toBe(after);
  const left = await fleet.scene.ledger.sql`SELECT 1 FROM work_item WHERE kind = 'poll'`;
  expect(left).toHaveLength(0);
});

it("what happens while no ingress listens is asked about as soon as one does, and the endpoint has an owned ticket", async () => {
  await reconciler.kill("SIGTERM");
  // From here on nothing is polled by itself.
  await fleet.spawn("reconcile-worker");
  await fleet.spawn("webhook-receiver", "apply-main.js");
  const env = { HEARTBEAT_MS: "100", WEBHOOK_GAP_MS: "700" };
  const ingress = await fleet.spawn("webhook-receiver", "ingress-main.js", env);
  const { endpointId } = await createWebhookEndpoint(fleet.scene.ledger, {
    tenantId: "acme",
    connectionId: "main",
    scheme: "elchi",
    secret,
  });
  const { ref } = await confirmed();
  await ingress.kill("SIGKILL");
  fleet.scene.simulator.advance(ref, "completed");
  await pause(1_500);
  expect(await statusOf(ref)).toBe("SENT");
  const again = await fleet.spawn("webhook-receiver", "ingress-main.js", env);
  await becomes(ref, "COMPLETED");
  expect(await ownedTickets()).toEqual([{ reason: "ingress-outage", owner: "contracts-team", subjectId: endpointId }]);
  await again.kill("SIGTERM");
});

it("an ingress that none of its sender's deliveries verify at says so once, and the requests are asked about", async () => {
  const ingress = await fleet.spawn("webhook-receiver", "ingress-main.js", { WEBHOOK_REFUSING_MS: "200" });
  const { endpointId, path } = await createWebhookEndpoint(fleet.scene.ledger, {
    tenantId: "acme",
    connectionId: "main",
    scheme: "elchi",
    secret,
  });
  const { ref } = await confirmed();
  fleet.scene.simulator.advance(ref, "viewed");
  const at = Math.floor(Date.now() / 1_000);
  const wrong = createHmac("sha256", "whsec_another").update(`${at}.{}`).digest("hex");
  const refused = async () =>
    (
      await fetch(`${ingress.url}${path}`, {
        method: "POST",
        headers: { "elchi-signature": `t=${at},v1=${wrong}` },
        body: "{}",
      })
    ).status;
  await until(
    async () => {
      expect(await refused()).toBe(401);
      return await ownedTickets();
    },
    (tickets) => tickets.some((each) => each.reason === "refusing" && each.subjectId === endpointId),
  );
  await becomes(ref, "VIEWED");
  await ingress.kill("SIGTERM");
});

it("a forged hint makes nobody believe it: the provider is asked, and its answer stands", async () => {
  const ingress = await fleet.spawn("webhook-receiver", "ingress-main.js");
  const { path } = await createWebhookEndpoint(fleet.scene.ledger, {
    tenantId: "acme",
    connectionId: "main",
    scheme: "dropbox-sign",
    secret: "the-api-key",
  });
  const hint = async (type: string, ref: string): Promise<void> => {
    const time = String(Math.floor(Date.now() / 1_000));
    const hash = createHmac("sha256", "the-api-key").update(`${time}${type}`).digest("hex");
    const body = JSON.stringify({
      event: { event_time: time, event_type: type, event_hash: hash },
      signature_request: { signature_request_id: ref },
    });
    const answer = await fetch(`${ingress.url}${path}`, { method: "POST", body });
    expect([answer.status, await answer.text()]).toEqual([200, "Hello API Event Received"]);
  };
  const outcomes = async (ref: string) =>
    (
      await fleet.scene.ledger.sql<{ status: string; outcome: string }[]>`
        SELECT status, outcome FROM webhook_inbox WHERE provider_ref = ${ref} ORDER BY inbox_id`
    ).map(({ status, outcome }) => `${status} ${outcome}`);
  const { ref } = await confirmed();
  await hint("signature_request_all_signed", ref);
  await until(
    () => outcomes(ref),
    (seen) => seen[0] === "NO_OP already-sent",
  );
  expect(await statusOf(ref)).toBe("SENT");
  fleet.scene.simulator.advance(ref, "viewed");
  await hint("signature_request_viewed", ref);
  await becomes(ref, "VIEWED");
  expect(await outcomes(ref)).toEqual(["NO_OP already-sent", "APPLIED VIEWED"]);
  // Of a request that the provider doesn't know nothing is made; it waits, and then a person has it.
  const nobodys = `sr_${randomUUID()}`;
  await hint("signature_request_viewed", nobodys);
  await until(
    () => outcomes(nobodys),
    (seen) => seen[0] === "QUARANTINED unmapped-reference",
  );
});
