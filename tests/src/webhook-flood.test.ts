import { createHmac, randomUUID } from "node:crypto";
import { createWebhookEndpoint } from "@countersign/ledger";
import { Agent, request } from "undici";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type FleetProcess, RealFleet } from "./real-processes.js";

const flood = 6_000;
const good = 300;
const secret = "whsec_flood-0123456789abcdef";
const marker = "MARKER-OF-A-STRANGER";

let fleet: RealFleet;
let ingress: FleetProcess;
let path: string;
let agent: Agent;
beforeAll(async () => {
  fleet = await RealFleet.start();
  // Its heartbeat is a write of its own and would be counted with the flood's.
  ingress = await fleet.spawn("webhook-receiver", "ingress-main.js", { HEARTBEAT_MS: "60000" });
  const made = await createWebhookEndpoint(fleet.scene.ledger, {
    tenantId: "acme",
    connectionId: "main",
    scheme: "elchi",
    secret,
  });
  path = made.path;
  agent = new Agent({ connections: 50 });
  // The server's own housekeeping would be counted with the flood.
  await fleet.scene.ledger.sql`ALTER SYSTEM SET autovacuum = off`;
  await fleet.scene.ledger.sql`SELECT pg_reload_conf()`;
});
afterAll(async () => {
  await agent.close();
  await fleet.stop();
});

const now = (): number => Math.floor(Date.now() / 1_000);
const signature = (key: string, body: string, at: number): string =>
  `t=${at},v1=${createHmac("sha256", key).update(`${at}.`).update(body).digest("hex")}`;

async function post(body: string, headers: Record<string, string>): Promise<{ status: number; ms: number }> {
  const from = performance.now();
  const answer = await request(`${ingress.url}${path}`, { method: "POST", dispatcher: agent, headers, body });
  await answer.body.dump();
  return { status: answer.statusCode, ms: performance.now() - from };
}
const event = (): string =>
  JSON.stringify({
    id: `evt_${randomUUID()}`,
    type: "signing_request.viewed",
    created_at: "2026-10-01T00:00:00Z",
    data: { signing_request_id: `sr_${randomUUID()}`, status: "viewed" },
  });
/** What strangers send: another secret, an old time, no header, garbage in it, another body than the one signed. */
const bad: readonly ((body: string) => Record<string, string>)[] = [
  (body) => ({ "elchi-signature": signature(`whsec_${marker}`, body, now()) }),
  (body) => ({ "elchi-signature": signature(secret, body, now() - 3_600) }),
  () => ({ "x-other": marker }),
  () => ({ "elchi-signature": `t=${marker},v1=zz,${"v1=00,".repeat(200)}` }),
  (body) => ({ "elchi-signature": signature(secret, `${body} `, now()) }),
];

async function goodOnes(): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < good; n += 1) {
    const body = event();
    const { status, ms } = await post(body, { "elchi-signature": signature(secret, body, now()) });
    expect(status).toBe(200);
    times.push(ms);
  }
  return times.sort((a, b) => a - b);
}
const at = (times: readonly number[], share: number): number => times[Math.floor(times.length * share)] ?? 0;

/** Every transaction that writes anything takes the next number; reading takes none. */
async function transactionNumber(): Promise<number> {
  const [row] = await fleet.scene.ledger.sql<
    { next: string }[]
  >`SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next`;
  return Number(row?.next);
}

async function floodOf(count: number): Promise<Record<number, number>> {
  const answers: Record<number, number> = {};
  let next = 0;
  const stranger = async (): Promise<void> => {
    while (next < count) {
      const body = `{"id":"evt_${next}","note":"${marker}"}`;
      const headers = bad[next % bad.length]?.(body) ?? {};
      next += 1;
      const { status } = await post(body, headers);
      answers[status] = (answers[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 20 }, stranger));
  return answers;
}

it("a flood of bad signatures writes nothing, says next to nothing, and good events go on", async () => {
  const alone = await goodOnes();
  const before = await transactionNumber();
  expect(await floodOf(flood / 2)).toEqual({ 401: flood / 2 });
  expect((await transactionNumber()) - before).toBe(0);

  const [under, answers] = await Promise.all([goodOnes(), floodOf(flood / 2)]);
  expect(answers).toEqual({ 401: flood / 2 });
  const [stored] = await fleet.scene.ledger.sql<{ count: number }[]>`SELECT count(*)::int AS count FROM webhook_inbox`;
  expect(stored?.count).toBe(2 * good);
  process.stdout.write(
    `flood: ${flood} refused without a write; good events alone p50 ${at(alone, 0.5).toFixed(1)} ms p99 ${at(alone, 0.99).toFixed(1)} ms, under the flood p50 ${at(under, 0.5).toFixed(1)} ms p99 ${at(under, 0.99).toFixed(1)} ms\n`,
  );
  const lines = ingress.output.split("\n").filter((line) => line.includes("webhook refused"));
  expect(lines.length).toBeLessThan(100);
  expect(ingress.output).not.toContain(marker);
  expect(ingress.output).not.toContain(path);
  const metrics = await (await fetch(`${ingress.url}/metrics`)).text();
  expect(metrics).toMatch(new RegExp(`deliveries_total\\{outcome="unauthorized"[^}]*\\} ${flood}`));
}, 120_000);
