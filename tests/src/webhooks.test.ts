import { createWebhookEndpoint, listTickets, setMetadataLookup } from "@countersign/ledger";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FleetProcess, RealFleet, until } from "./real-processes.js";

const secret = "whsec_marker-webhook-secret-0123456789abcdef";
let fleet: RealFleet;
let ingress: FleetProcess;

beforeAll(async () => {
  fleet = await RealFleet.start();
  ingress = await fleet.spawn("webhook-receiver", "ingress-main.js");
  await fleet.spawn("webhook-receiver", "apply-main.js");
  await fleet.spawn("reconcile-worker");
  await fleet.spawn("submit-worker");
  const { path } = await createWebhookEndpoint(fleet.scene.ledger, {
    tenantId: "acme",
    connectionId: "main",
    scheme: "elchi",
    secret,
  });
  fleet.scene.simulator.configure({
    workspaces: [{ name: "one", keys: ["wsk_test"], hooks: [{ url: `${ingress.url}${path}`, secret }] }],
  });
});
afterAll(async () => {
  await fleet.stop();
});

const signingStatus = async (ref: string): Promise<string | undefined> => {
  const [row] = await fleet.scene.ledger.sql<
    { status: string }[]
  >`SELECT status FROM contract_signing WHERE provider_ref = ${ref}`;
  return row?.status;
};

it("an event settles an UNKNOWN where nothing can be looked up", async () => {
  await setMetadataLookup(fleet.scene.ledger, "acme", "main", false);
  const [id = ""] = await fleet.send(1, (operationId) =>
    fleet.scene.simulator.script({ kind: "lost-response", operationId }),
  );
  await fleet.allIn([id], "CONFIRMED");
  await setMetadataLookup(fleet.scene.ledger, "acme", "main", true);
  const history = await fleet.scene.history(id);
  expect(history.find((line) => line.toState === "CONFIRMED")?.evidence).toMatchObject({ settledBy: "webhook" });
  expect(fleet.scene.books(id)).toMatchObject({ requests: 1, arrivals: 1 });
});

it("a FINALIZE is done when the request completes, long before its next poll", async () => {
  const [send = ""] = await fleet.send(1);
  await fleet.allIn([send], "CONFIRMED");
  const id = await fleet.scene.planOn("FINALIZE", send);
  await fleet.handOverSubmits([id]);
  await until(
    () => fleet.scene.operation(id),
    (operation) => operation.state === "UNKNOWN" && operation.lastObservation?.kind === "not-yet",
  );
  const { providerRef } = await fleet.scene.operation(send);
  fleet.scene.simulator.advance(providerRef ?? "", "completed");
  await fleet.allIn([id], "CONFIRMED");
  const { archivedSha256 } = await fleet.scene.operation(id);
  expect(archivedSha256).toMatch(/^[0-9a-f]{64}$/);
});

it("what the provider says of a request is followed to its end", async () => {
  const [id = ""] = await fleet.send(1);
  await fleet.allIn([id], "CONFIRMED");
  const { providerRef } = await fleet.scene.operation(id);
  for (const [word, status] of [
    ["viewed", "VIEWED"],
    ["signed", "PARTIALLY_SIGNED"],
    ["completed", "COMPLETED"],
  ] as const) {
    fleet.scene.simulator.advance(providerRef ?? "", word);
    await until(
      () => signingStatus(providerRef ?? ""),
      (seen) => seen === status,
    );
  }
});

it("a request that completes although its VOID was planned goes to a person", async () => {
  const [id = ""] = await fleet.send(1);
  await fleet.allIn([id], "CONFIRMED");
  const { providerRef } = await fleet.scene.operation(id);
  fleet.scene.simulator.advance(providerRef ?? "", "completed");
  const voidId = await fleet.scene.planVoid(id);
  await fleet.allIn([voidId], "NEEDS_REVIEW");
  const tickets = await listTickets(fleet.scene.ledger, "acme");
  expect(tickets.find((ticket) => ticket.subjectId === voidId)).toMatchObject({
    kind: "needs-review",
    owner: "contracts-team",
  });
});

describe("planted markers", () => {
  const markers = {
    address: "marker-address@example.com",
    name: "Marker-Signer-Name",
    file: "marker-document-name.pdf",
    note: "marker-metadata-value",
    intent: "marker-intent-key",
    token: "wsk_test",
    secret,
  };

  async function redisText(): Promise<string> {
    const client = new Redis(fleet.redis.url);
    const parts: string[] = [];
    for (const key of await client.keys("*")) {
      parts.push(key);
      const type = await client.type(key);
      if (type === "string") parts.push((await client.get(key)) ?? "");
      if (type === "hash") parts.push(JSON.stringify(await client.hgetall(key)));
      if (type === "list") parts.push((await client.lrange(key, 0, -1)).join());
      if (type === "zset") parts.push((await client.zrange(key, "0", "-1")).join());
      if (type === "stream") parts.push(JSON.stringify(await client.xrange(key, "-", "+")));
    }
    client.disconnect();
    return parts.join("\n");
  }

  it("are found in no log line, Redis key or value, and metric", async () => {
    const payload = fleet.scene.payload({
      signers: [{ email: markers.address, name: markers.name, role: "customer", order: 1 }],
      metadata: { note: markers.note },
    });
    const [document] = payload.documents;
    const ids: string[] = [];
    for (const [index, kind] of (
      ["lost-response", "truncated-2xx", "5xx-before-commit", "429-burst"] as const
    ).entries()) {
      const planned = await fleet.scene.planSend({
        intentKey: `${markers.intent}-${index}`,
        payload: { ...payload, documents: [{ sha256: document?.sha256 ?? "", fileName: markers.file }] },
      });
      fleet.scene.simulator.script({ kind, operationId: planned.operationId });
      ids.push(planned.operationId);
    }
    await fleet.handOverSubmits(ids);
    await fleet.allIn(ids, "CONFIRMED");
    const forged = await fetch(`${ingress.url}/webhooks/we_marker-endpoint?marker-query=1`, {
      method: "POST",
      body: JSON.stringify({ id: "marker-event", email: markers.address }),
      headers: { "elchi-signature": "t=1,v1=marker", "x-forwarded-for": "203.0.113.77" },
    });
    expect(forged.status).toBeGreaterThanOrEqual(400);
    const references = await fleet.scene.ledger.sql<
      { provider_ref: string }[]
    >`SELECT provider_ref FROM operation_reference`;
    const metrics = await Promise.all(fleet.processes.map(async (each) => (await fetch(`${each.url}/metrics`)).text()));
    const logs = fleet.processes.map((each) => each.output);
    const redis = await redisText();
    expect(redis).toContain("countersign");
    expect(logs.join("")).toContain("provider call recorded");
    const everything = [...metrics, ...logs, redis, await forged.text()].join("\n");
    const hidden = [
      ...Object.values(markers),
      "marker-query",
      "marker-event",
      "203.0.113.77",
      ...references.map((row) => row.provider_ref),
    ];
    for (const marker of hidden) expect(everything, marker).not.toContain(marker);
  });
});
