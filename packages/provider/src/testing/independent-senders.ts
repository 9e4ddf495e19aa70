import { createHmac } from "node:crypto";
import { EventCallbackHelper, EventCallbackRequest } from "@dropbox/sign";
import { sign as signLikeGitHub, verify as verifyLikeGitHub } from "@octokit/webhooks-methods";
import { Webhook as StandardWebhook } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as SvixWebhook } from "svix";

/** A delivery as it goes over the wire. */
export interface Sent {
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

/** A sender of one scheme that shares no code with our verifiers, and its own verifier where it publishes one. */
export interface Sender {
  readonly scheme: string;
  readonly secret: string;
  /** Another secret of the right form. */
  readonly otherSecret: string;
  /** Signs with `secret` at `seconds` (Unix time). */
  send(body: string, seconds: number, secret: string): Promise<Sent>;
  /** What the independent verifier says at the system's time; absent: none is published. */
  accepts?(sent: Sent, secret: string): Promise<boolean>;
}

const whsec = "whsec_c2VjcmV0LW9mLXRoZS1lbmRwb2ludC1vbmU=";
const otherWhsec = "whsec_YW5vdGhlci1zZWNyZXQtb2YtYW4tZW5kcG9pbnQ=";
const text = (body: Uint8Array): string => Buffer.from(body).toString("utf8");

async function passes(check: () => unknown): Promise<boolean> {
  try {
    return (await check()) !== false;
  } catch {
    // The libraries refuse by throwing; which of their errors it is says nothing more here.
    return false;
  }
}

const stripeHeader = (payload: string, timestamp: number, secret: string): string =>
  Stripe.webhooks.generateTestHeaderString({ payload, timestamp, secret });
const stripeAccepts = (header: string, body: Uint8Array, secret: string): Promise<boolean> =>
  passes(() => Stripe.webhooks.signature?.verifyHeader(body, header, secret, 300));

/** `Stripe-Signature` under any name: the scheme is used by others with the header renamed. */
const stripeLike = (scheme: string, header: string): Sender => ({
  scheme,
  secret: whsec,
  otherSecret: otherWhsec,
  send: async (body, seconds, secret) => ({
    headers: { [header]: stripeHeader(body, seconds, secret) },
    body: Buffer.from(body),
  }),
  accepts: (sent, secret) => stripeAccepts(sent.headers[header] ?? "", sent.body, secret),
});

const standard = (scheme: string, prefix: string, library: typeof StandardWebhook | typeof SvixWebhook): Sender => ({
  scheme,
  secret: whsec,
  otherSecret: otherWhsec,
  send: async (body, seconds, secret) => ({
    headers: {
      [`${prefix}-id`]: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      [`${prefix}-timestamp`]: String(seconds),
      [`${prefix}-signature`]: new library(secret).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", new Date(seconds * 1000), body),
    },
    body: Buffer.from(body),
  }),
  accepts: (sent, secret) => passes(() => new library(secret).verify(text(sent.body), sent.headers)),
});

/** The event as Dropbox Sign posts it, with its hash made by hand: its library only verifies. */
async function dropboxSend(body: string, seconds: number, secret: string): Promise<Sent> {
  const [event_time, event_type] = [String(seconds), "signature_request_sent"];
  const event_hash = createHmac("sha256", secret).update(`${event_time}${event_type}`).digest("hex");
  const form = new FormData();
  form.set("json", JSON.stringify({ ...JSON.parse(body), event: { event_time, event_type, event_hash } }));
  const response = new Response(form);
  return {
    headers: { "content-type": response.headers.get("content-type") ?? "" },
    body: new Uint8Array(await response.arrayBuffer()),
  };
}

async function dropboxAccepts(sent: Sent, secret: string): Promise<boolean> {
  return await passes(async () => {
    const form = await new Response(Buffer.from(sent.body), { headers: sent.headers }).formData();
    return EventCallbackHelper.isValid(secret, EventCallbackRequest.init(JSON.parse(String(form.get("json")))));
  });
}

/** One for every scheme. */
export const senders: readonly Sender[] = [
  stripeLike("elchi", "elchi-signature"),
  stripeLike("stripe", "stripe-signature"),
  standard("standard-webhooks", "webhook", StandardWebhook),
  standard("svix", "svix", SvixWebhook),
  {
    scheme: "hmac-sha256",
    secret: "It's a Secret to Everybody",
    otherSecret: "another secret",
    send: async (body, _seconds, secret) => ({
      headers: { "x-hub-signature-256": await signLikeGitHub(secret, body) },
      body: Buffer.from(body),
    }),
    accepts: (sent, secret) =>
      passes(() => verifyLikeGitHub(secret, text(sent.body), sent.headers["x-hub-signature-256"] ?? "")),
  },
  {
    scheme: "docusign",
    secret: "connect-key-one",
    otherSecret: "connect-key-two",
    // The same HMAC of the same bytes, written in base64.
    send: async (body, _seconds, secret) => ({
      headers: {
        "x-docusign-signature-1": Buffer.from((await signLikeGitHub(secret, body)).slice(7), "hex").toString("base64"),
      },
      body: Buffer.from(body),
    }),
  },
  {
    scheme: "dropbox-sign",
    secret: "324e3b0840f065eb51f3fd63231d0d33daa35d4ed10d27718839e81737065782",
    otherSecret: "287560737189e93881772d01de4d53aad33d01323df36f15be560f0480b3e423",
    send: dropboxSend,
    accepts: dropboxAccepts,
  },
  {
    scheme: "docuseal",
    secret: whsec,
    otherSecret: otherWhsec,
    // The same HMAC over the same bytes, written without tags.
    send: async (body, seconds, secret) => ({
      headers: { "x-docuseal-signature": `${seconds}.${stripeHeader(body, seconds, secret).split("v1=")[1]}` },
      body: Buffer.from(body),
    }),
    accepts: (sent, secret) => {
      const [seconds, hex] = (sent.headers["x-docuseal-signature"] ?? "").split(".");
      return stripeAccepts(`t=${seconds},v1=${hex}`, sent.body, secret);
    },
  },
  {
    scheme: "documenso",
    secret: "a-shared-secret",
    otherSecret: "another-shared-secret",
    send: async (body, _seconds, secret) => ({ headers: { "x-documenso-secret": secret }, body: Buffer.from(body) }),
  },
];
