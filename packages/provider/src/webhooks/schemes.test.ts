import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { DeliveryHeaders } from "../port.js";
import { type Sender, type Sent, senders } from "../testing/independent-senders.js";
import { webhookScheme, webhookSchemes } from "./registry.js";
import type { WebhookScheme } from "./scheme.js";

const now = 1_790_000_000_000;
const seconds = now / 1000;
const body = '{"id":"evt_1","type":"signing_request.sent","note":"\u00e9 / \\u20ac"}';

// The independent verifiers read the system's clock.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"], now }));
afterAll(() => void vi.useRealTimers());

const schemeOf = ({ scheme }: Sender): WebhookScheme => {
  const found = webhookScheme(scheme);
  if (found === undefined) throw new Error(`no scheme ${scheme}`);
  return found;
};
const verify = (
  sender: Sender,
  sent: { headers: DeliveryHeaders; body: Uint8Array },
  secret = sender.secret,
  at = now,
) => schemeOf(sender).verify(sent.body, sent.headers, [{ secretId: "s1", secret }], at);
const verdict = (
  sender: Sender,
  sent: { headers: DeliveryHeaders; body: Uint8Array },
  secret?: string,
  at?: number,
) => {
  const result = verify(sender, sent, secret, at);
  return result.ok ? "ok" : result.reason;
};
const timed = senders.filter((sender) => schemeOf(sender).toleranceMs !== undefined);
const coversBody = senders.filter((sender) => schemeOf(sender).authenticatesBody);
const named = (list: readonly Sender[]) => list.map((sender) => [sender.scheme, sender] as const);

it("every scheme has an independent sender", () => {
  expect(senders.map(({ scheme }) => scheme).sort()).toEqual([...webhookSchemes.keys()].sort());
});

describe.each(named(senders))("%s", (_name, sender) => {
  const scheme = schemeOf(sender);
  let sent: Sent;
  beforeAll(async () => {
    sent = await sender.send(body, seconds, sender.secret);
  });

  it("what the independent sender signs is accepted, and names the secret", () => {
    expect(verify(sender, sent)).toMatchObject({ ok: true, secretId: "s1" });
    expect(scheme.fault(sent.body, sent.headers)).toBeUndefined();
  });

  it("what the independent verifier says of a good, a foreign and a changed delivery is what we say", async () => {
    const { accepts } = sender;
    if (accepts === undefined) return;
    const foreign = await sender.send(body, seconds, sender.otherSecret);
    const changed = { ...sent, body: Buffer.from(Buffer.from(sent.body).toString().replace("evt_1", "evt_2")) };
    for (const delivery of [sent, foreign, changed]) {
      expect(verify(sender, delivery).ok).toBe(await accepts(delivery, sender.secret));
    }
  });

  it("the header is found in any case, as a list and repeated; without it nothing passes", () => {
    const entries = Object.entries(sent.headers);
    const upper = Object.fromEntries(entries.map(([name, value]) => [name.toUpperCase(), value]));
    const listed = Object.fromEntries(entries.map(([name, value]) => [name, [value]]));
    const twice = Object.fromEntries(entries.map(([name, value]) => [name, [value, value]]));
    const joined = Object.fromEntries(entries.map(([name, value]) => [name, `${value}, ${value}`]));
    for (const headers of [upper, listed, twice, joined]) expect(verdict(sender, { ...sent, headers })).toBe("ok");
    if (scheme.headers.length > 0) expect(verdict(sender, { ...sent, headers: {} })).toBe("missing-header");
    for (const name of scheme.headers.filter((header) => header in sent.headers)) {
      expect(verdict(sender, { ...sent, headers: { ...sent.headers, [name]: "" } })).toBe("missing-header");
      expect(verdict(sender, { ...sent, headers: { ...sent.headers, [name]: undefined } })).toBe("missing-header");
      const endless = { ...sent.headers, [name]: "x".repeat(20_000) };
      expect(verify(sender, { ...sent, headers: endless }).ok).toBe(false);
    }
  });

  it("any active secret passes; another, an empty or no secret doesn't", () => {
    const secrets = [
      { secretId: "new", secret: sender.otherSecret },
      { secretId: "old", secret: sender.secret },
    ];
    expect(scheme.verify(sent.body, sent.headers, secrets, now)).toMatchObject({ ok: true, secretId: "old" });
    expect(verdict(sender, sent, sender.otherSecret)).toBe("no-matching-signature");
    expect(verdict(sender, sent, "")).toBe("no-matching-signature");
    expect(scheme.verify(sent.body, sent.headers, [], now).ok).toBe(false);
  });

  it("a secret with any byte changed is refused", () => {
    // The prefix and the padding bits of base64 are no part of a decoded key.
    const from = scheme.eventId === "signed-header" ? "whsec_".length : 0;
    const to = scheme.eventId === "signed-header" ? sender.secret.length - 2 : sender.secret.length;
    for (let index = from; index < to; index += 1) {
      const changed = sender.secret.slice(0, index) + flipped(sender.secret[index]) + sender.secret.slice(index + 1);
      expect(verify(sender, sent, changed).ok).toBe(false);
    }
  });

  it("a header with any character changed is refused", () => {
    const read = scheme.headers.filter((name) => name in sent.headers);
    for (const name of read) {
      const value = sent.headers[name] ?? "";
      for (let index = 0; index < value.length; index += 1) {
        const changed = value.slice(0, index) + flipped(value[index]) + value.slice(index + 1);
        expect(verify(sender, { ...sent, headers: { ...sent.headers, [name]: changed } }).ok).toBe(false);
      }
    }
  });

  it("no headers and no bytes make it throw, or pass", () => {
    const names = fc.oneof(fc.constantFrom(...scheme.headers, "content-type"), fc.string());
    const values = fc.oneof(
      fc.string(),
      fc.array(fc.string()),
      fc.constant(undefined),
      fc.constantFrom("t=1,v1=", "v1,", "sha256=", `${seconds}.`, `t=${seconds},v1=${"0".repeat(64)}`),
    );
    const bodies = fc.oneof(
      fc.uint8Array(),
      fc.json().map((json) => Buffer.from(json)),
    );
    fc.assert(
      fc.property(fc.dictionary(names, values), bodies, (headers, bytes) => {
        expect(verify(sender, { headers, body: bytes }).ok).toBe(false);
        scheme.fault(bytes, headers);
        scheme.signedId?.(headers);
        scheme.unsignedId?.(headers);
      }),
      { numRuns: 300 },
    );
  });

  it("takes its own secrets and none that is empty or has white space around it", () => {
    expect(scheme.checkSecret(sender.secret)).toBeUndefined();
    for (const secret of ["", `${sender.secret}\n`, ` ${sender.secret}`]) {
      expect(scheme.checkSecret(secret)).toBeTypeOf("string");
    }
  });
});

const flipped = (character = ""): string => String.fromCharCode(character.charCodeAt(0) ^ 1);

describe.each(named(coversBody))("%s covers the body", (_name, sender) => {
  it("one bit flipped anywhere is refused", async () => {
    const sent = await sender.send(body, seconds, sender.secret);
    for (let index = 0; index < sent.body.length; index += 1) {
      const changed = Buffer.from(sent.body);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(verdict(sender, { ...sent, body: changed })).toBe("no-matching-signature");
    }
  });

  it("whatever the bytes are, those that were signed pass and others don't", async () => {
    const texts = fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc.json(),
      fc.constantFrom("\ufeff{}", "{}\r\n", "\0", "x"),
    );
    await fc.assert(
      fc.asyncProperty(texts, fc.nat(), async (content, at) => {
        fc.pre(content.isWellFormed() && content !== "");
        const sent = await sender.send(content, seconds, sender.secret);
        expect(verdict(sender, sent)).toBe("ok");
        const changed = Buffer.from(sent.body);
        changed[at % changed.length] = (changed[at % changed.length] ?? 0) ^ 0x80;
        expect(verdict(sender, { ...sent, body: changed })).toBe("no-matching-signature");
      }),
      { numRuns: 50 },
    );
  });
});

it.each(["dropbox-sign", "documenso"])(
  "%s does not cover the body, and says so: its events are hints",
  async (name) => {
    const sender = senders.find(({ scheme }) => scheme === name);
    if (sender === undefined) throw new Error("no sender");
    const sent = await sender.send('{"signature_request":{"signature_request_id":"a"}}', seconds, sender.secret);
    const forged = Buffer.from(Buffer.from(sent.body).toString().replace('"a"', '"b"'));
    expect(verdict(sender, { ...sent, body: forged })).toBe("ok");
    expect(webhookScheme(name)?.authenticatesBody).toBe(false);
  },
);

describe.each(named(timed))("%s has a time window", (_name, sender) => {
  it.each([
    ["the moment itself", 0, "ok"],
    ["five minutes old", -300, "ok"],
    ["five minutes ahead", 300, "ok"],
    ["older", -301, "timestamp-out-of-window"],
    ["further ahead", 301, "timestamp-out-of-window"],
  ])("%s", async (_, offset, expected) => {
    const sent = await sender.send(body, seconds + offset, sender.secret);
    expect(verdict(sender, sent)).toBe(expected);
    // Stripe's own check knows only "too old".
    const looser = offset > 300 && schemeOf(sender).eventId !== "signed-header";
    const theirs = await sender.accepts?.(sent, sender.secret);
    if (theirs !== undefined) expect(theirs).toBe(looser || expected === "ok");
  });

  it("out of the window is only said of a genuine delivery", async () => {
    const foreign = await sender.send(body, seconds - 900, sender.otherSecret);
    expect(verdict(sender, foreign)).toBe("no-matching-signature");
    const genuine = verify(sender, await sender.send(body, seconds - 900, sender.secret));
    expect(genuine).toEqual({
      ok: false,
      reason: "timestamp-out-of-window",
      secretId: "s1",
      signedAt: (seconds - 900) * 1000,
    });
  });
});

describe("of many signatures", () => {
  const find = (name: string): Sender => {
    const sender = senders.find(({ scheme }) => scheme === name);
    if (sender === undefined) throw new Error("no sender");
    return sender;
  };

  it("Standard Webhooks: versions other than v1 are ignored, the first sixteen are tried", async () => {
    const sender = find("standard-webhooks");
    const sent = await sender.send(body, seconds, sender.secret);
    const good = sent.headers["webhook-signature"] ?? "";
    const wrong = `v1,${"A".repeat(43)}=`;
    const withList = (...list: string[]) => ({
      ...sent,
      headers: { ...sent.headers, "webhook-signature": list.join(" ") },
    });
    expect(verdict(sender, withList(wrong, "v1a,xyz", "v2,abc", "nonsense", good))).toBe("ok");
    expect(verdict(sender, withList(good.replace("v1,", "v1a,")))).toBe("malformed-header");
    expect(verdict(sender, withList(...Array.from({ length: 15 }, () => wrong), good))).toBe("ok");
    expect(verdict(sender, withList(...Array.from({ length: 16 }, () => wrong), good))).toBe("no-matching-signature");
    // The last character holds two bits that decode to nothing: another text all the same.
    const sibling = good.replace(/.=$/, (end) => `${String.fromCharCode(end.charCodeAt(0) + 1)}=`);
    expect(verdict(sender, withList(sibling))).toBe("no-matching-signature");
  });

  it("Svix takes the webhook- names, too, and its own first", async () => {
    const standard = find("standard-webhooks");
    const sent = await standard.send(body, seconds, standard.secret);
    expect(verdict(find("svix"), sent)).toBe("ok");
    expect(verdict(find("svix"), { ...sent, headers: { ...sent.headers, "svix-id": "msg_other" } })).toBe(
      "no-matching-signature",
    );
    const svix = await find("svix").send(body, seconds, standard.secret);
    expect(verdict(standard, svix)).toBe("missing-header");
  });

  it("DocuSign: any numbered header with any key; beyond the sixteenth none", async () => {
    const sender = find("docusign");
    const sent = await sender.send(body, seconds, sender.secret);
    const good = sent.headers["x-docusign-signature-1"] ?? "";
    const wrong = `${"A".repeat(43)}=`;
    const numbered = (number: number) => ({
      ...sent,
      headers: { "X-DocuSign-Signature-1": wrong, [`X-DocuSign-Signature-${number}`]: good },
    });
    expect(verdict(sender, numbered(2))).toBe("ok");
    expect(verdict(sender, numbered(16))).toBe("ok");
    expect(verdict(sender, numbered(17))).toBe("no-matching-signature");
  });

  it("Documenso: the empty header of a sender without a secret never passes", () => {
    const scheme = schemeOf(find("documenso"));
    const nothing = [{ secretId: "s0", secret: "" }];
    expect(scheme.verify(Buffer.from("{}"), { "x-documenso-secret": "" }, nothing, now).ok).toBe(false);
    expect(scheme.verify(Buffer.from("{}"), { "x-documenso-secret": " " }, nothing, now).ok).toBe(false);
  });
});

it.each([
  ["elchi", "c2VjcmV0", "whsec_"],
  ["stripe", "whsec_", "whsec_"],
  ["docuseal", "secret", "whsec_"],
  ["standard-webhooks", "whsec_not base64", "base64"],
  ["standard-webhooks", `whsec_${Buffer.alloc(23).toString("base64")}`, "24 to 64"],
  ["svix", `whsec_${Buffer.alloc(65).toString("base64")}`, "24 to 64"],
  ["documenso", "s\u00e9cret", "header"],
])("%s refuses a secret that could never verify, without repeating it: case %#", (name, secret, because) => {
  const fault = webhookScheme(name)?.checkSecret(secret);
  expect(fault).toContain(because);
  if (secret.length > "whsec_".length) expect(fault).not.toContain(secret);
});
