import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach } from "vitest";
import { z } from "zod";
import type { SimulatorOptions } from "./config.js";
import { plainPdf } from "./sealed-document.js";
import { type RunningSimulator, startSimulator } from "./start.js";

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A simulator that ends with its test. */
export async function simulator(options: SimulatorOptions = {}): Promise<RunningSimulator> {
  const running = await startSimulator(options);
  cleanups.push(() => running.stop());
  return running;
}

/** An answer, read to its end. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

interface CallOptions {
  readonly key?: string;
  readonly token?: string;
  readonly body?: FormData | string;
  readonly signal?: AbortSignal;
}

const anObject = z.record(z.string(), z.unknown());

/** Calls the simulator as a customer would. */
export async function call(
  base: RunningSimulator,
  method: string,
  path: string,
  { key, token = "wsk_test", body, signal }: CallOptions = {},
): Promise<Reply> {
  const response = await fetch(`${base.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(key === undefined ? {} : { "idempotency-key": key }),
      ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
    },
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    redirect: "manual",
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  const parsed = anObject.safeParse(isJson && text !== "" ? JSON.parse(text) : undefined);
  return { status: response.status, headers: response.headers, text, json: parsed.success ? parsed.data : {} };
}

export const SIGNERS = JSON.stringify([{ email: "signer@example.com", role: "customer" }]);

/** A form that is accepted; named fields replace or add to it, `null` takes one out. */
export function sendForm(changes: Record<string, string | null> = {}, pdfText = "contract", filename = "contract.pdf") {
  const form = new FormData();
  form.set("file", new Blob([new Uint8Array(plainPdf([pdfText]))], { type: "application/pdf" }), filename);
  form.set("signers", SIGNERS);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) form.delete(name);
    else form.set(name, value);
  }
  return form;
}

export function send(
  base: RunningSimulator,
  key?: string,
  changes: Record<string, string | null> = {},
): Promise<Reply> {
  return call(base, "POST", "/v1/signing-requests", { body: sendForm(changes), ...(key === undefined ? {} : { key }) });
}

/** Metadata of one operation, as a form field. */
export function operation(operationId: string, tenant = "acme"): { metadata: string } {
  return { metadata: JSON.stringify({ tenant, operation_id: operationId }) };
}

export function instantiate(base: RunningSimulator, body: string, key?: string, template = "tpl_contract") {
  const path = `/v1/templates/${template}/instantiate`;
  return call(base, "POST", path, { body, ...(key === undefined ? {} : { key }) });
}

export const INSTANCE = `{"signers":${SIGNERS},"fields":{"price":"12"}}`;
export const STAGED = `{"signers":${SIGNERS},"review":true}`;

/** The machine code of an error answer. */
export function codeOf(reply: Reply): string | undefined {
  return z.object({ error: z.object({ code: z.string(), message: z.string() }) }).safeParse(reply.json).data?.error
    .code;
}

export function idOf(reply: Reply): string {
  return z.string().parse(reply.json.id);
}

/** A delivery as a customer's endpoint received it. */
export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly raw: string;
  readonly id: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

const eventSchema = z.object({ id: z.string(), type: z.string(), created_at: z.string(), data: anObject });

/** A customer's endpoint. `answer` gives the status of each delivery; `"silence"` never answers. */
export async function receiver(answer: (delivery: Received) => number | "silence" = () => 200) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const raw = Buffer.concat(chunks).toString("utf8");
      const { id, type, data } = eventSchema.parse(JSON.parse(raw));
      const delivery = { headers: request.headers, raw, id, type, data };
      received.push(delivery);
      const status = answer(delivery);
      if (status !== "silence") response.writeHead(status, { location: "/elsewhere" }).end();
    });
  });
  return { url: `${await listen(server)}/hook`, received, types: () => received.map(({ type }) => type) };
}

/** Starts a server on a free port that ends with its test; answers its base address. */
export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return `http://127.0.0.1:${address.port}`;
}

/** Options of a simulator whose only workspace posts to this hook. */
export function withHook(url: string, options: SimulatorOptions = {}): SimulatorOptions {
  const workspace = { name: "default", keys: ["wsk_test"], hooks: [{ url, secret: "whsec_test" }] };
  return { ...options, workspaces: [workspace] };
}
