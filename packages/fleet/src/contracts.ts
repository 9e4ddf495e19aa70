import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import type { Refusal, SignatureProvider } from "@countersign/provider";
import {
  intentKey,
  type JsonValue,
  type NeutralPayload,
  neutralPayload,
  newId,
  parseStrictJson,
  StrictJsonError,
  sha256,
} from "@countersign/runtime";
import { z } from "zod";
import { FleetError } from "./errors.js";

/** One line of a contracts file: what the business means to do, and what is to be approved. */
export interface Contract {
  readonly intent: string;
  readonly payload: NeutralPayload;
  /** The bytes behind `payload.documents[0]`. */
  readonly document: Buffer;
}

/** A contracts file that can't be used: says file, line, field, and what to do. Repeats no value from the file. */
export class ContractsError extends FleetError {
  override readonly name = "ContractsError";
  readonly line: number | undefined;
  readonly field: string | undefined;

  constructor(file: string, line: number | undefined, field: string | undefined, problem: string) {
    const where = [file, ...(line === undefined ? [] : [`line ${line}`]), ...(field === undefined ? [] : [field])];
    super(`${where.join(", ")}: ${problem}`);
    this.line = line;
    this.field = field;
  }
}

/** Room for what revisions, amendments and withdrawals append. */
const longestIntent = 230;

const ownFields = z.looseObject({
  intent: intentKey
    .max(longestIntent, `must be at most ${longestIntent} characters`)
    .refine((key) => !key.startsWith("cs:"), "must not start with cs:, which is kept for the system"),
  document: z.string("must be the path of a PDF, relative to this file").min(1),
});

/**
 * Reads a file of contracts, one JSON object a line; empty lines are skipped. Paths of documents are relative to the
 * file. Checked as the API would check it, and against what the provider can send, so that nothing starts half-way.
 * @throws ContractsError for the first line that can't be used
 */
export async function readContracts(file: string, provider: SignatureProvider): Promise<Contract[]> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new ContractsError(file, undefined, undefined, `cannot be read (${codeOf(error)}); check the path`);
  });
  const documents = new Map<string, Buffer>();
  const contracts: Contract[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const reader = new LineReader(file, index + 1, provider, documents);
    const contract = await reader.read(line);
    const former = lineOf.get(contract.intent);
    if (former !== undefined) throw reader.error("intent", `is the same as on line ${former}; give each its own`);
    lineOf.set(contract.intent, index + 1);
    contracts.push(contract);
  }
  if (contracts.length === 0) {
    throw new ContractsError(file, undefined, undefined, "holds no contract; write one JSON object a line");
  }
  return contracts;
}

class LineReader {
  readonly #file: string;
  readonly #line: number;
  readonly #provider: SignatureProvider;
  readonly #documents: Map<string, Buffer>;

  constructor(file: string, line: number, provider: SignatureProvider, documents: Map<string, Buffer>) {
    this.#file = file;
    this.#line = line;
    this.#provider = provider;
    this.#documents = documents;
  }

  error(field: string | undefined, problem: string): ContractsError {
    return new ContractsError(this.#file, this.#line, field, problem);
  }

  async read(text: string): Promise<Contract> {
    const value = this.#json(text);
    const { intent, document: path, ...rest } = this.#checked(ownFields, value);
    for (const name of ["documents", "template"]) {
      if (name in rest) throw this.error(name, "is not read from a contracts file; name one PDF in document");
    }
    const document = await this.#pdf(path);
    const documents = [{ sha256: sha256(document).toString("hex"), fileName: basename(path) }];
    const payload = this.#checked(neutralPayload, { ...rest, documents });
    const prepared: object | Refusal = this.#provider.prepare("SEND", payload, {
      tenantId: "example",
      operationId: newId(),
    });
    if ("refused" in prepared && "field" in prepared && "message" in prepared) {
      throw this.error(String(prepared.field), `cannot be sent: ${prepared.message}; take it out`);
    }
    return { intent, payload, document };
  }

  #json(text: string): JsonValue {
    try {
      return parseStrictJson(text);
    } catch (error) {
      if (!(error instanceof StrictJsonError)) throw error;
      const at = error.path === "" ? "" : ` at ${error.path}`;
      throw this.error(undefined, `${error.message}${at}; write one JSON object on this line`);
    }
  }

  #checked<T>(schema: z.ZodType<T>, value: unknown): T {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    const [issue] = result.error.issues;
    const keys = issue?.code === "unrecognized_keys" ? issue.keys : [];
    if (keys.length > 0) {
      throw this.error(
        [...(issue?.path ?? []), keys[0]].join("."),
        "is not a field of a contract; correct or remove it",
      );
    }
    const field = issue === undefined || issue.path.length === 0 ? undefined : issue.path.join(".");
    throw this.error(field, `${issue?.message ?? "is not valid"}; see examples/README.md for what a line holds`);
  }

  async #pdf(path: string): Promise<Buffer> {
    const full = resolve(dirname(this.#file), path);
    const known = this.#documents.get(full);
    if (known !== undefined) return known;
    const bytes = await readFile(full).catch((error: unknown) => {
      throw this.error("document", `cannot be read (${codeOf(error)}); paths are relative to ${dirname(this.#file)}`);
    });
    if (bytes.subarray(0, 5).toString("latin1") !== "%PDF-") {
      throw this.error("document", "is not a PDF: it does not start with %PDF-; name a PDF");
    }
    this.#documents.set(full, bytes);
    return bytes;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

/** The contract's name without its revision, and the revision (1 where none is named). */
function revisionOf(intent: string): { stem: string; revision: number } {
  const match = /^(.*)-rev-(\d{1,9})$/.exec(intent);
  return { stem: match?.[1] ?? intent, revision: Number(match?.[2] ?? 1) };
}

/** `count` contracts: those of the file, then again as further revisions, each under an intent key of its own. */
export function repeatAsRevisions(contracts: readonly Contract[], count: number): Contract[] {
  const used = new Set(contracts.map(({ intent }) => intent));
  const repeated = contracts.slice(0, count);
  for (let index = contracts.length; repeated.length < count; index += 1) {
    const contract = contracts[index % contracts.length];
    if (contract === undefined) return repeated;
    const { stem, revision } = revisionOf(contract.intent);
    let next = revision + Math.floor(index / contracts.length);
    while (used.has(`${stem}-rev-${next}`)) next += 1;
    const intent = `${stem}-rev-${next}`;
    used.add(intent);
    repeated.push({ ...contract, intent });
  }
  return repeated;
}
