import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type EndpointView, openAllSecrets } from "@countersign/ledger";
import { type Diagnosis, diagnoseDelivery, webhookScheme } from "@countersign/provider";
import { safeError } from "@countersign/runtime";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, collect, define } from "../define.js";
import { exitCodes, RefusedError, UsageError } from "../errors.js";
import type { CliIo } from "../io.js";
import { endpointOption, tenantOption } from "../options.js";
import { withLedger } from "../with-ledger.js";

const maxBodyBytes = 16 * 1024 * 1024;

/** `webhook verify`. */
export function addWebhook(program: Command, tools: CommandTools): void {
  const webhook = program.command("webhook").description("Single deliveries.");
  define(webhook, tools, {
    name: "verify",
    description:
      "Tell whether a delivery verifies at an endpoint and, where it does not, which part is wrong: header, secret, time " +
      "or bytes. Exits 0 or 1. Nothing is stored and nothing secret is printed.",
    example:
      "countersign webhook verify --endpoint we_… --tenant acme --file body --header 'Elchi-Signature: t=1767312000,v1=…'",
    options: (command) =>
      command
        .requiredOption("--endpoint <id>", "where it came in")
        .requiredOption("--tenant <id>", "whose endpoint")
        .option("--file <path>", "its body, the raw bytes as they came")
        .option("--body-stdin", "read the body from standard input instead")
        .option("--header <'name: value'>", "one of its headers; may be repeated", collect)
        .option("--at <instant>", "judge its time as of then, not now: 2026-01-31T08:00:00Z"),
    schema: z.object({
      endpoint: endpointOption,
      tenant: tenantOption,
      file: z.string().min(1).optional(),
      bodyStdin: z.boolean().default(false),
      header: z.array(z.string()).default([]),
      at: z.iso.datetime({ offset: true, error: "must be an instant: 2026-01-31T08:00:00Z" }).optional(),
    }),
    run: async ({ endpoint: endpointId, tenant, file, bodyStdin, header, at }, io) => {
      if ((file === undefined) !== bodyStdin) throw new UsageError("give one of --file and --body-stdin; see --help");
      const headers = headersOf(header);
      const captured = await bodyOf(io, file);
      const { endpoint, secrets, others } = await withLedger(io, (ledger) =>
        openAllSecrets(ledger, tenant, endpointId),
      );
      const scheme = webhookScheme(endpoint.scheme);
      if (scheme === undefined) throw new RefusedError("scheme-unknown", "this build has no such webhook scheme");
      const body = await signedBytes(endpoint, headers, captured);
      const diagnosis = diagnoseDelivery(
        scheme,
        body,
        headers,
        { current: secrets.filter((each) => each.active), retired: secrets.filter((each) => !each.active), others },
        at === undefined ? Date.now() : Date.parse(at),
      );
      const notes = notesOf(endpoint, headers);
      return {
        value: { endpointId, scheme: scheme.name, disabled: endpoint.disabledAt !== null, ...diagnosis, notes },
        text: [`${heading[diagnosis.part]}${diagnosis.message}`, diagnosis.remedy, ...notes].join("\n"),
        exitCode: diagnosis.part === "ok" ? exitCodes.done : exitCodes.refused,
      };
    },
  });
}

const heading: Readonly<Record<Diagnosis["part"], string>> = {
  ok: "",
  header: "Wrong: the header. ",
  time: "Wrong: the time. ",
  secret: "Wrong: the secret. ",
  bytes: "Wrong: the bytes. ",
  "secret-or-bytes": "Wrong: the secret or the bytes. ",
};

/** `name: value` lines as a server would give them: names in lower case, repeated ones together. */
function headersOf(lines: readonly string[]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const line of lines) {
    const [, name = "", value = ""] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name === "") throw new UsageError("--header must be 'name: value', one header each; see --help");
    const key = name.toLowerCase();
    const former = headers[key];
    headers[key] = former === undefined ? value : [former, value].flat();
  }
  return headers;
}

async function bodyOf(io: CliIo, file: string | undefined): Promise<Buffer> {
  const body = file === undefined ? await io.stdin(maxBodyBytes) : await readBody(file);
  if (body.length > maxBodyBytes)
    throw new UsageError(`the body is over ${maxBodyBytes} bytes: no delivery is that large`);
  return body;
}

async function readBody(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    const { code, type } = safeError(error);
    throw new UsageError(`--file can't be read (${String(code ?? type)})`, { cause: error });
  }
}

/** Where the content is signed and the file still holds it packed, what is in it. */
async function signedBytes(
  { gzip }: EndpointView,
  headers: Record<string, string | string[]>,
  body: Buffer,
): Promise<Buffer> {
  const packed = headers["content-encoding"] !== undefined && body[0] === 0x1f && body[1] === 0x8b;
  if (gzip !== "content" || !packed) return body;
  try {
    return await promisify(gunzip)(body, { maxOutputLength: maxBodyBytes });
  } catch (error) {
    throw new RefusedError("not-gzip", "the body says that it is gzip and can't be unpacked", { cause: error });
  }
}

/** What would be answered otherwise than by the signature alone. */
function notesOf(endpoint: EndpointView, headers: Record<string, string | string[]>): string[] {
  const packed = headers["content-encoding"] !== undefined;
  return [
    ...(endpoint.disabledAt === null ? [] : ["The endpoint is disabled: deliveries are answered 404."]),
    ...(packed && endpoint.gzip === null
      ? ["The endpoint takes no compressed deliveries: they are answered 415 (make one with --gzip)."]
      : []),
  ];
}
