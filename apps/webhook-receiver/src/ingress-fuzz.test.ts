import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect as dial } from "node:net";
import { gzipSync } from "node:zlib";
import { createWebhookEndpoint } from "@countersign/ledger";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { deliver, eventBody, inbox, startHouse, startIngress, type TestHouse, type TestIngress } from "./testing.js";

const cases = process.env.COUNTERSIGN_DEEP === "1" ? 20_000 : 2_000;
const bodyLimit = 8 * 1024;
const key = randomBytes(32);
const secret = `whsec_${key.toString("base64")}`;

let house: TestHouse;
let ingress: TestIngress;
const endpoints = new Map<string, string>();
beforeAll(async () => {
  house = await startHouse();
  ingress = await startIngress(house, { bodyLimit, receiveTimeoutMs: 150, endpointCacheMs: 60_000 });
  for (const scheme of Object.keys(signers)) {
    const { endpointId } = await createWebhookEndpoint(house.ledger, {
      tenantId: "acme",
      connectionId: "main",
      scheme,
      secret,
      gzip: "content",
    });
    endpoints.set(scheme, endpointId);
  }
});
afterAll(async () => {
  await ingress.close();
  await house.stop();
});

type HeaderLines = [name: string, value: string][];
const mac = (over: Uint8Array, withKey: string | Buffer, encoding: "hex" | "base64"): string =>
  createHmac("sha256", withKey).update(over).digest(encoding);
const joined = (head: string, body: Uint8Array): Buffer => Buffer.concat([Buffer.from(head), body]);

/** How each scheme's sender signs a body; written from the schemes' references, not from our verifiers. */
const signers: Record<string, (body: Uint8Array, at: number) => HeaderLines> = {
  elchi: (body, at) => [["Elchi-Signature", `t=${at},v1=${mac(joined(`${at}.`, body), secret, "hex")}`]],
  stripe: (body, at) => [["Stripe-Signature", `t=${at},v1=${mac(joined(`${at}.`, body), secret, "hex")}`]],
  "standard-webhooks": (body, at) => {
    const id = `msg_${randomUUID()}`;
    return [
      ["Webhook-Id", id],
      ["Webhook-Timestamp", String(at)],
      ["Webhook-Signature", `v1,${mac(joined(`${id}.${at}.`, body), key, "base64")}`],
    ];
  },
  svix: (body, at) => {
    const id = `msg_${randomUUID()}`;
    return [
      ["Svix-Id", id],
      ["Svix-Timestamp", String(at)],
      ["Svix-Signature", `v1,${mac(joined(`${id}.${at}.`, body), key, "base64")}`],
    ];
  },
  "hmac-sha256": (body) => [["X-Hub-Signature-256", `sha256=${mac(body, secret, "hex")}`]],
  docusign: (body) => [["X-DocuSign-Signature-1", mac(body, secret, "base64")]],
  docuseal: (body, at) => [["X-Docuseal-Signature", `${at}.${mac(joined(`${at}.`, body), secret, "hex")}`]],
  documenso: () => [["X-Documenso-Secret", secret]],
};

interface Case {
  scheme: string;
  body: Uint8Array;
  /** `right` verifies; nothing else may. */
  signed: "right" | "other-secret" | "other-body" | "old" | "none";
  odd: HeaderLines;
  oddCase: boolean;
  repeated: boolean;
  framing: "length" | "chunked" | "both" | "short" | "long" | "none";
  encoding: "none" | "identity" | "gzip" | "gzip-lie" | "br";
  expectContinue: boolean;
}

const json = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.constant("").map(() => eventBody()),
  fc.array(fc.constant(0), { maxLength: 5 }).map((events) => `[${events.map(() => eventBody()).join(",")}]`),
  fc.constantFrom(
    "",
    "null",
    "[]",
    "[[[]]]",
    '{"id":"evt_\\u0000","type":"signing_request.viewed","data":{"signing_request_id":"sr"}}',
    '{"id":"evt_1","type":"signing_request.viewed","data":{"signing_request_id":"\\u0000"}}',
    '{"id":"\\ud800","type":"signing_request.viewed"}',
    '{"id":"evt_2","id":"evt_3"}',
    '{"id":1e400,"type":12345678901234567890}',
    '{"__proto__":{"id":"x"},"constructor":1}',
    `{"id":"${"i".repeat(3_000)}","type":"signing_request.viewed","data":{}}`,
    `{"event":"envelope-sent","data":{"envelopeId":null}}`,
    `${"[".repeat(2_000)}${"]".repeat(2_000)}`,
    `[${"0,".repeat(1_500)}0]`,
  ),
);
const bodies = fc.oneof(
  { weight: 6, arbitrary: json.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  { weight: 1, arbitrary: fc.constant(Buffer.alloc(bodyLimit + 1, "x")) },
  { weight: 1, arbitrary: fc.constant(Buffer.from("\ufeff{}")) },
);
const value = fc.oneof(
  fc.string({ maxLength: 30, unit: "binary" }),
  fc.string({ maxLength: 30, unit: "grapheme-ascii" }),
  fc.constantFrom("", "t=,v1=", `t=1,${"v1=00,".repeat(500)}`, "v1,", "sha256=", "\t", "x".repeat(9_000), "a\0b"),
);
const oddHeader = fc.tuple(
  fc.constantFrom(
    "Content-Type",
    "Elchi-Signature",
    "Elchi-Event-Id",
    "Webhook-Id",
    "Webhook-Signature",
    "X-DocuSign-Signature-3",
    "X-Forwarded-For",
    "Transfer-Encoding",
    "Content-Length",
    "Host",
    "Connection",
    "Upgrade",
    "X-Odd",
  ),
  value,
);
const anyCase: fc.Arbitrary<Case> = fc.record({
  scheme: fc.constantFrom(...Object.keys(signers)),
  body: bodies,
  signed: fc.oneof(
    { weight: 3, arbitrary: fc.constant("right" as const) },
    {
      weight: 3,
      arbitrary: fc.constantFrom("other-secret" as const, "other-body" as const, "old" as const, "none" as const),
    },
  ),
  odd: fc.oneof(
    { weight: 2, arbitrary: fc.constant<HeaderLines>([]) },
    { weight: 1, arbitrary: fc.array(oddHeader, { maxLength: 3 }) },
  ),
  oddCase: fc.boolean(),
  repeated: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  framing: fc.oneof(
    { weight: 10, arbitrary: fc.constantFrom("length" as const, "chunked" as const) },
    { weight: 1, arbitrary: fc.constantFrom("both" as const, "short" as const, "long" as const, "none" as const) },
  ),
  encoding: fc.oneof(
    { weight: 4, arbitrary: fc.constant("none" as const) },
    { weight: 1, arbitrary: fc.constantFrom("identity" as const, "gzip" as const, "gzip-lie" as const, "br" as const) },
  ),
  expectContinue: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
});

/** Which headers a case carries, and whether they are those that its sender would send. */
function signatureOf({ scheme, body, signed, repeated, oddCase }: Case): HeaderLines {
  const sign = signers[scheme];
  if (sign === undefined || signed === "none") return [];
  const at = Math.floor(Date.now() / 1_000) - (signed === "old" ? 3_600 : 0);
  const lines = sign(signed === "other-body" ? Buffer.concat([body, Buffer.from("!")]) : body, at);
  const written = lines.map(([name, text]): [string, string] => [
    oddCase
      ? [...name].map((letter, index) => (index % 2 ? letter.toUpperCase() : letter.toLowerCase())).join("")
      : name,
    signed === "other-secret"
      ? text.replace(/[0-9a-zA-Z](?=[^0-9a-zA-Z]*$)/, (last) => (last === "0" ? "1" : "0"))
      : text,
  ]);
  return repeated ? [...written, ...written] : written;
}

/** Schemes without a time have no old deliveries; a shared secret says nothing of the body. */
function mayVerify({ scheme, signed }: Case): boolean {
  if (signed === "right") return true;
  if (signed === "old") return ["hmac-sha256", "docusign", "documenso"].includes(scheme);
  return signed === "other-body" && scheme === "documenso";
}

function wireOf(each: Case): Buffer {
  const { framing, encoding } = each;
  const packed = encoding === "gzip" ? gzipSync(each.body) : Buffer.from(each.body);
  const head: HeaderLines = [
    ["Host", "localhost"],
    ["Content-Type", "application/json"],
    ...signatureOf(each),
    ...each.odd,
    ["Connection", "close"],
  ];
  if (encoding !== "none") head.push(["Content-Encoding", encoding === "gzip-lie" ? "gzip" : encoding]);
  if (each.expectContinue) head.push(["Expect", "100-continue"]);
  const length = framing === "short" ? Math.max(0, packed.length - 1) : packed.length + (framing === "long" ? 5 : 0);
  if (framing !== "chunked" && framing !== "none") head.push(["Content-Length", String(length)]);
  if (framing === "chunked" || framing === "both") head.push(["Transfer-Encoding", "chunked"]);
  const lines = head.map(([name, text]) => `${name}: ${text}\r\n`).join("");
  const start = Buffer.from(`POST /webhooks/${endpoints.get(each.scheme) ?? ""} HTTP/1.1\r\n${lines}\r\n`, "latin1");
  const chunk =
    packed.length === 0 ? [] : [Buffer.from(`${packed.length.toString(16)}\r\n`), packed, Buffer.from("\r\n")];
  const body = framing === "chunked" || framing === "both" ? [...chunk, Buffer.from("0\r\n\r\n")] : [packed];
  return Buffer.concat([start, ...body]);
}

/** The final status and whether it came with Retry-After; undefined where the connection was closed without one. */
async function exchange(wire: Buffer): Promise<{ status: number; retryAfter: boolean } | undefined> {
  const socket = dial(ingress.port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
  });
  socket.on("error", () => undefined);
  socket.write(wire);
  await once(socket, "close");
  const final = answer.replace(/^(HTTP\/1\.1 100 [^\r]*\r\n\r\n)+/, "");
  const status = /^HTTP\/1\.1 (\d{3})/.exec(final)?.[1];
  return status === undefined ? undefined : { status: Number(status), retryAfter: /\r\nretry-after:/i.test(final) };
}

const rows = async (): Promise<number> =>
  (await house.ledger.sql<{ count: number }[]>`SELECT count(*)::int AS count FROM webhook_inbox`)[0]?.count ?? -1;

it(`${cases} requests of any shape: no 5xx but a deliberate 503, no row for what did not verify, a row for what did`, async () => {
  let stored = await rows();
  const seen: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(anyCase, async (each) => {
      const answer = await exchange(wireOf(each));
      const status = answer?.status ?? 0;
      seen[status] = (seen[status] ?? 0) + 1;
      if (status >= 500) expect(answer).toEqual({ status: 503, retryAfter: true });
      // What follows a complete request is taken for another, broken one: its 400 may overtake the first one's answer.
      const overtaken = mayVerify(each) && each.framing === "short";
      if (overtaken) await new Promise((resolve) => setTimeout(resolve, 50));
      const after = await rows();
      if (!overtaken && (status !== 200 || !mayVerify(each))) expect(after - stored).toBe(0);
      if (!mayVerify(each)) expect(status).not.toBe(200);
      const plain =
        each.odd.length === 0 &&
        !each.repeated &&
        (each.framing === "length" || each.framing === "chunked") &&
        each.encoding !== "br" &&
        each.encoding !== "gzip-lie" &&
        each.body.length <= bodyLimit;
      if (plain && each.signed === "right") expect([200, 413]).toContain(status);
      stored = after;
    }),
    { numRuns: cases, seed: 20261201 },
  );
  process.stdout.write(`fuzz: ${cases} requests, answers ${JSON.stringify(seen)}, ${stored} rows\n`);
  // Every answer that matters was given, and the process still takes a good delivery.
  for (const status of [200, 400, 401, 413, 415]) expect(seen[status], String(status)).toBeGreaterThan(0);
  const before = (await inbox(house)).length;
  expect((await deliver(ingress, house.acme, eventBody())).status).toBe(200);
  expect((await inbox(house)).length).toBe(before + 1);
}, 900_000);
