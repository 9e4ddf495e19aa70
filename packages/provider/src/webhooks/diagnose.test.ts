import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DeliveryHeaders } from "../port.js";
import { type Sender, senders } from "../testing/independent-senders.js";
import { type Diagnosis, diagnoseDelivery } from "./diagnose.js";
import { webhookScheme } from "./registry.js";
import type { WebhookScheme } from "./scheme.js";

const now = 1_790_000_000_000;
const seconds = now / 1000;
const body = '{"id":"evt_1","type":"signing_request.sent","note":"caf\u00e9 a/b"}';
const retiredSecret = "whsec_cmV0aXJlZC1zZWNyZXQtb2YtdGhlLWVuZHBvaW50";

const senderOf = (name: string): Sender => {
  const sender = senders.find(({ scheme }) => scheme === name);
  if (sender === undefined) throw new Error(`no sender ${name}`);
  return sender;
};
const schemeOf = (name: string): WebhookScheme => {
  const scheme = webhookScheme(name);
  if (scheme === undefined) throw new Error(`no scheme ${name}`);
  return scheme;
};

function diagnose(
  name: string,
  sent: { headers: DeliveryHeaders; body: Uint8Array },
  secret = senderOf(name).secret,
): Diagnosis {
  const secrets = {
    current: [{ secretId: "current-1", secret }],
    retired: [{ secretId: "retired-1", secret: retiredSecret }],
    others: [{ label: "endpoint of main", secret: senderOf(name).otherSecret }],
  };
  return diagnoseDelivery(schemeOf(name), sent.body, sent.headers, secrets, now);
}
const elchi = (content = body, at = seconds, secret = senderOf("elchi").secret) =>
  senderOf("elchi").send(content, at, secret);

describe("the part that is wrong is named", () => {
  it.each(senders.map(({ scheme }) => scheme))("%s: nothing, another endpoint's or a retired secret", async (name) => {
    const sender = senderOf(name);
    const good = await sender.send(body, seconds, sender.secret);
    expect(diagnose(name, good)).toMatchObject({ part: "ok", secretId: "current-1" });
    const foreign = await sender.send(body, seconds, sender.otherSecret);
    expect(diagnose(name, foreign)).toMatchObject({
      part: "secret",
      problem: "other-endpoint",
      label: "endpoint of main",
    });
    const old = await sender.send(body, seconds, retiredSecret);
    expect(diagnose(name, old)).toMatchObject({ part: "secret", problem: "retired", secretId: "retired-1" });
  });

  it.each(senders.filter(({ scheme }) => scheme !== "dropbox-sign").map(({ scheme }) => scheme))(
    "%s: which header is missing",
    (name) => {
      const [header] = schemeOf(name).headers;
      const found = diagnose(name, { headers: {}, body: Buffer.from(body) });
      expect(found).toMatchObject({ part: "header", problem: "missing", header });
      expect(found.message).toContain(header);
    },
  );

  it.each([
    ["elchi", { "elchi-signature": "v1=00" }, "has no t="],
    ["elchi", { "elchi-signature": "t=soon,v1=00" }, "not plain Unix seconds"],
    ["elchi", { "elchi-signature": `t=1,t=2,v1=00` }, "several t="],
    ["elchi", { "elchi-signature": "t=1" }, "has no v1="],
    ["elchi", { "elchi-signature": "t=1,v1=ABC" }, "64 lower-case hex digits"],
    ["standard-webhooks", { "webhook-id": "a", "webhook-timestamp": "x", "webhook-signature": "v1,a" }, "Unix seconds"],
    ["standard-webhooks", { "webhook-id": "a", "webhook-timestamp": "1", "webhook-signature": "v1a,a" }, "version v1"],
    ["standard-webhooks", { "webhook-id": "a b", "webhook-timestamp": "1", "webhook-signature": "v1,a" }, "printable"],
    ["standard-webhooks", { "webhook-id": "a", "webhook-timestamp": "1", "webhook-signature": "v1,a" }, "base64"],
    ["hmac-sha256", { "x-hub-signature-256": "sha1=00" }, "has no sha256="],
    ["docusign", { "x-docusign-signature-1": "00" }, "44 characters of base64"],
    ["docuseal", { "x-docuseal-signature": "00" }, "Unix seconds and a dot"],
    ["documenso", { "x-documenso-secret": ["a", "b"] }, "different values"],
  ])("%s: what is wrong with its header, case %#", (name, headers, words) => {
    const found = diagnose(name, { headers, body: Buffer.from(body) });
    expect(found).toMatchObject({ part: "header", problem: "malformed" });
    expect(found.message).toContain(words);
  });

  it("svix: the missing one of several headers", async () => {
    const { headers, body: bytes } = await senderOf("svix").send(body, seconds, senderOf("svix").secret);
    const found = diagnose("svix", { headers: { ...headers, "svix-timestamp": undefined }, body: bytes });
    expect(found).toMatchObject({ part: "header", problem: "missing", header: "svix-timestamp" });
  });

  it("the time: by how much, and which way", async () => {
    const old = diagnose("elchi", await elchi(body, seconds - 3_600));
    expect(old).toMatchObject({ part: "time", secretId: "current-1", offsetMs: -3_600_000 });
    expect(old.message).toContain("3600 s before now");
    expect(old.remedy).toContain("sent again");
    const ahead = diagnose("elchi", await elchi(body, seconds + 400));
    expect(ahead).toMatchObject({ part: "time", offsetMs: 400_000 });
    expect(ahead.remedy).toContain("clock");
  });

  const { secret } = senderOf("elchi");
  it.each([
    ["without-prefix", secret.slice("whsec_".length)],
    ["white-space", `${secret}\n`],
    ["white-space", ` ${secret}`],
  ])("the secret as the sender used it: %s, case %#", async (problem, used) => {
    expect(diagnose("elchi", await elchi(body, seconds, used))).toMatchObject({
      part: "secret",
      problem,
      secretId: "current-1",
    });
  });

  it("the secret as it was stored here: white space, or no prefix", async () => {
    expect(diagnose("elchi", await elchi(), `${secret}\n`)).toMatchObject({ part: "secret", problem: "white-space" });
    expect(diagnose("elchi", await elchi(), secret.slice(6))).toMatchObject({ part: "secret", problem: "with-prefix" });
  });

  it("a secret that one side decodes and the other doesn't", async () => {
    const standard = senderOf("standard-webhooks");
    const { headers } = await standard.send(body, seconds, `whsec_${Buffer.from(secret).toString("base64")}`);
    expect(diagnose("standard-webhooks", { headers, body: Buffer.from(body) }, secret)).toMatchObject({
      part: "secret",
      problem: "not-decoded",
    });
    const key = Buffer.from("a-key-of-plain-text-0123").toString("base64");
    const plain = await senderOf("hmac-sha256").send(body, seconds, "a-key-of-plain-text-0123");
    expect(diagnose("hmac-sha256", plain, key)).toMatchObject({ part: "secret", problem: "base64-decoded" });
  });

  const value: unknown = JSON.parse(body);
  it.each([
    ["trailing-newline-added", body, `${body}\n`],
    ["trailing-newline-added", body, `${body}\r\n`],
    ["trailing-newline-removed", `${body}\n`, body],
    ["line-endings", '{\n"a":1\n}', '{\r\n"a":1\r\n}'],
    ["line-endings", '{\r\n"a":1\r\n}', '{\n"a":1\n}'],
    ["byte-order-mark", body, `\ufeff${body}`],
    ["byte-order-mark", `\ufeff${body}`, body],
    ["json-reserialised", body, JSON.stringify(value, null, 2)],
    ["json-reserialised", JSON.stringify(value, null, 2), body],
    ["json-reserialised", body.replaceAll('":', '": ').replaceAll(',"', ', "'), body],
    ["json-reserialised", body.replace("\u00e9", "\\u00e9"), body],
    ["json-reserialised", body.replace("\u00e9", "\\u00e9").replace("/", "\\/"), body],
    ["gzipped", body, gzipSync(body)],
  ])("the bytes: %s, case %#", async (problem, signed, received) => {
    const { headers } = await elchi(signed);
    const found = diagnose("elchi", { headers, body: Buffer.from(received) });
    expect(found).toMatchObject({ part: "bytes", problem, secretId: "current-1" });
  });

  it("a changed body that also comes late is still one of bytes", async () => {
    const { headers } = await elchi(body, seconds - 3_600);
    const found = diagnose("elchi", { headers, body: Buffer.from(`${body}\n`) });
    expect(found).toMatchObject({ part: "bytes", problem: "trailing-newline-added" });
  });

  it("a body that holds its own proof and can't be read", () => {
    const found = diagnose("dropbox-sign", { headers: {}, body: Buffer.from("{}") });
    expect(found).toMatchObject({ part: "bytes", problem: "unreadable" });
  });

  it("and honestly none where nothing fits", async () => {
    const { headers } = await elchi(body, seconds, "whsec_nobody-knows-this-one");
    expect(diagnose("elchi", { headers, body: Buffer.from(body) })).toMatchObject({ part: "secret-or-bytes" });
    const guess = { headers: { "x-documenso-secret": "nobody-knows" }, body: Buffer.from(body) };
    expect(diagnose("documenso", guess)).toMatchObject({ part: "secret", problem: "unknown" });
  });
});

it("it never throws, and its texts never hold a secret, a header's value or anything of the body", () => {
  const marker = "MARKER";
  const headers = fc.dictionary(
    fc.constantFrom(...senders.flatMap(({ scheme }) => schemeOf(scheme).headers)),
    fc.string().map((text) => `${text}${marker}`),
  );
  const bodies = fc.oneof(
    fc.json().map((text) => Buffer.from(text)),
    fc.uint8Array().map((bytes) => Buffer.concat([gzipSync(marker).subarray(0, 10), bytes])),
    fc.string().map((text) => Buffer.from(`${text}${marker}\r\n`)),
  );
  fc.assert(
    fc.property(fc.constantFrom(...senders), headers, bodies, ({ scheme }, sent, bytes) => {
      const { message, remedy } = diagnose(scheme, { headers: sent, body: bytes }, `whsec_${marker}`);
      expect(`${message} ${remedy}`).not.toContain(marker);
      expect(message).toMatch(/^[^\n]+\.$/);
    }),
    { numRuns: 300 },
  );
});
