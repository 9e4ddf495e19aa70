import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type Connection, type Ledger, openConnection, recordLookupVerification } from "@countersign/ledger";
import type { CallContext, LookupCall, LookupResult, PreparedRequest, SignatureProvider } from "@countersign/provider";
import { neutralPayload, newId, sha256 } from "@countersign/runtime";
import { RefusedError, UnreachableError } from "./errors.js";
import { sandboxPdf } from "./sandbox-pdf.js";

export interface VerifyOptions {
  readonly ledger: Ledger;
  providerByName(name: string): SignatureProvider | undefined;
  readonly tenantId: string;
  readonly connectionId: string;
  /** How long the request may take to show up in the lookup, ms. */
  readonly lagTimeoutMs: number;
  /** Who vouches, for the record. */
  readonly by: string;
  /** Who is mailed by the sandbox request. */
  readonly signerEmail?: string;
  /** Told of every step as it ends. */
  onStep?(step: VerifyStep): void;
}

/** One step of the check. `note` holds codes, counts and times only. */
export interface VerifyStep {
  readonly step: "send" | "find-by-metadata" | "empty-filter" | "list-of-many" | "read-by-id" | "withdraw";
  readonly ok: boolean;
  readonly ms: number;
  readonly note: string;
}

export interface VerifyResult {
  /** Whether an empty lookup may count towards absence from now on. */
  readonly verified: boolean;
  /** From the provider's answer until the request was found, ms; an upper bound of the lag. */
  readonly lagMs?: number;
  readonly note: string;
  /** The id that the request carries in its metadata. */
  readonly operationId: string;
  /** The request could not be withdrawn: a person has to. */
  readonly leftBehind: boolean;
  readonly steps: readonly VerifyStep[];
}

/** Reserved for documentation (RFC 2606): nobody reads mail there. */
export const defaultSandboxSigner = "countersign-check@example.com";

/**
 * Exercises the lookup of a connection with one real, tagged request and records the result: make it, find it by our
 * metadata, ask for an id that nobody has, read it by its own id, withdraw it (also when a step failed). A failed step
 * is recorded as not verified.
 *
 * @throws RefusedError where it can't be tried (lookup switched off, request refused) or the send was ambiguous,
 *   UnreachableError where no byte left; neither records anything
 */
export async function verifyConnection(options: VerifyOptions): Promise<VerifyResult> {
  const check = await Check.open(options);
  const sent = await check.send();
  let looked: Looked | undefined;
  let gone = false;
  try {
    if (sent !== undefined) looked = await check.look(sent);
  } finally {
    gone = await check.withdraw(sent);
  }
  if (sent === undefined) {
    const left = gone ? "it was found and withdrawn" : `look for metadata operation_id ${check.operationId}`;
    throw new RefusedError("send-ambiguous", `nobody can tell whether the check's request was made; ${left}`);
  }
  // A list that doesn't show what was made only means that many are not settled by it: each is looked up by itself.
  const failed = check.steps.find((step) => !step.ok && step.step !== "withdraw" && step.step !== "list-of-many");
  const note = failed === undefined ? `found after ${looked?.lagMs ?? 0} ms` : `${failed.step}: ${failed.note}`;
  const verified = failed === undefined;
  const lag = looked === undefined ? {} : { lagMs: looked.lagMs };
  await recordLookupVerification(options.ledger, options.tenantId, options.connectionId, {
    verified,
    by: options.by,
    note,
    ...lag,
    list: verified && looked?.list === true,
  });
  return { verified, ...lag, note, operationId: check.operationId, leftBehind: !gone, steps: check.steps };
}

/** What the looks showed. */
interface Looked {
  lagMs: number;
  /** One list for many may count towards absence. */
  list: boolean;
}

/** Beyond any difference of the two clocks, ms. */
const listMarginMs = 3_600_000;

/** One run against one connection. */
class Check {
  readonly operationId = newId();
  readonly steps: VerifyStep[] = [];
  readonly #options: VerifyOptions;
  readonly #provider: SignatureProvider;
  readonly #lookupCall: LookupCall;

  static async open(options: VerifyOptions): Promise<Check> {
    const connection = await openConnection(options.ledger, options.tenantId, options.connectionId);
    const provider = options.providerByName(connection.provider);
    if (provider === undefined)
      throw new RefusedError("provider-unknown", "this build has no adapter for the connection's provider");
    if (!provider.capabilities.SEND.lookup.byMetadata) {
      throw new RefusedError("no-lookup", "this provider offers no lookup by metadata; there is nothing to verify");
    }
    if (!connection.metadataLookup) {
      throw new RefusedError(
        "lookup-off",
        "lookup by metadata is switched off on this connection; there is nothing to verify",
      );
    }
    return new Check(options, provider, connection);
  }

  private constructor(
    options: VerifyOptions,
    provider: SignatureProvider,
    connection: Connection & { credential: string },
  ) {
    this.#options = options;
    this.#provider = provider;
    const { baseUrl, credential } = connection;
    this.#lookupCall = { baseUrl, credential, deadlineMs: provider.capabilities.SEND.deadlineMs };
  }

  /** The reference of the tagged request; undefined where the answer left it open whether there is one. */
  async send(): Promise<string | undefined> {
    const started = performance.now();
    const request = this.#sandboxRequest();
    const observation = await this.#provider.submit("SEND", request, this.#call());
    switch (observation.kind) {
      case "accepted":
      case "queued":
        this.#note("send", true, started, `${observation.kind} ${observation.httpStatus}`);
        return observation.ref;
      case "not-sent":
        throw new UnreachableError(
          "provider-unreachable",
          `the provider can't be reached (${observation.cause}); check --base-url`,
        );
      case "declined":
      case "refused": {
        const said = `${observation.code} ${observation.httpStatus}`;
        throw new RefusedError(
          `send-${observation.kind}`,
          `the provider ${observation.kind} the check's request (${said})`,
        );
      }
      default:
        this.#note("send", false, started, "cause" in observation ? observation.cause : observation.code);
        return undefined;
    }
  }

  /** The looks, as far as they go; undefined where one failed before the lag was known. */
  async look(ref: string): Promise<Looked | undefined> {
    const sentBy = new Date();
    const lagMs = await this.#find(ref);
    if (lagMs === undefined) return undefined;
    await this.#askForNothing();
    const list = await this.#list(ref, sentBy);
    await this.#read(ref);
    return { lagMs, list };
  }

  /** Does one list of everything since a moment show it, and one that begins later not? Then absence may be read from it. */
  async #list(ref: string, sentBy: Date): Promise<boolean> {
    const provider = this.#provider;
    if (provider.lookupMany === undefined || provider.capabilities.SEND.lookup.many !== true) return false;
    const started = performance.now();
    const { operationId } = this;
    const since = (createdAfter: Date) =>
      provider.lookupMany?.(
        { tenantId: this.#options.tenantId, operationIds: [operationId], createdAfter },
        this.#lookupCall,
      );
    const recent = await since(new Date(sentBy.getTime() - listMarginMs));
    const later = await since(new Date(sentBy.getTime() + listMarginMs));
    const shows =
      recent?.kind === "found" && recent.matches.get(operationId)?.some((match) => match.ref === ref) === true;
    const honours = later?.kind === "found" && later.items === 0;
    const note = shows && honours ? "shows what was made, and only since the moment asked for" : "not to be relied on";
    this.#note("list-of-many", shows && honours, started, note);
    return shows && honours;
  }

  /** Withdraws the request, or whatever the lookup finds of it; true where nothing is left. */
  async withdraw(ref: string | undefined): Promise<boolean> {
    const started = performance.now();
    const refs = ref === undefined ? await this.#whatWasMade() : [ref];
    const prepared = this.#provider.prepare("VOID", { schemaVersion: 1 }, this.#ids());
    if ("refused" in prepared) {
      this.#note("withdraw", false, started, "not-supported");
      return false;
    }
    let gone = ref !== undefined || refs.length > 0;
    for (const targetRef of refs) {
      const observation = await this.#provider.submit("VOID", prepared, { ...this.#call(), targetRef });
      const seen = await this.#until(
        (result) => statusOf(result, targetRef) === "withdrawn",
        10_000,
        () => this.#provider.lookup({ by: "reference", ref: targetRef }, this.#lookupCall),
      );
      gone &&= seen !== undefined;
      this.#note("withdraw", seen !== undefined, started, seen === undefined ? observation.kind : "seen withdrawn");
    }
    return gone;
  }

  async #find(ref: string): Promise<number | undefined> {
    const started = performance.now();
    let last: LookupResult | undefined;
    const found = await this.#until(
      (result) => statusOf(result, ref) !== undefined || isAbsent(result),
      this.#options.lagTimeoutMs,
      async () => {
        last = await this.#byMetadata(this.operationId);
        return last;
      },
    );
    const lagMs = Math.round(performance.now() - started);
    if (found === undefined || isAbsent(found)) {
      this.#note("find-by-metadata", false, started, failureNote(last));
      return undefined;
    }
    if (others(found) > 0) {
      this.#note("find-by-metadata", false, started, "filter-not-honoured");
      return undefined;
    }
    this.#note("find-by-metadata", true, started, `${lagMs} ms after the answer`);
    return lagMs;
  }

  async #askForNothing(): Promise<void> {
    const started = performance.now();
    const result = await this.#byMetadata(newId());
    const empty = result.kind === "found" && result.matches.length === 0 && others(result) === 0;
    const note = result.kind === "failed" ? result.cause : empty ? "found nothing, as it must" : "filter-not-honoured";
    this.#note("empty-filter", empty, started, note);
  }

  async #read(ref: string): Promise<void> {
    const started = performance.now();
    const result = await this.#provider.lookup({ by: "reference", ref }, this.#lookupCall);
    const status = statusOf(result, ref);
    this.#note("read-by-id", status !== undefined, started, status ?? failureNote(result));
  }

  /** After an ambiguous send: references that the lookup shows within the time for the lag. */
  async #whatWasMade(): Promise<string[]> {
    const result = await this.#until(
      (seen) => seen.kind === "found" && seen.matches.length > 0,
      this.#options.lagTimeoutMs,
      () => this.#byMetadata(this.operationId),
    );
    return result?.kind === "found" ? result.matches.map(({ ref }) => ref) : [];
  }

  #byMetadata(operationId: string): Promise<LookupResult> {
    return this.#provider.lookup({ by: "metadata", tenantId: this.#options.tenantId, operationId }, this.#lookupCall);
  }

  /** Looks until the answer will do; undefined when the time is over. */
  async #until(
    enough: (result: LookupResult) => boolean,
    timeoutMs: number,
    look: () => Promise<LookupResult>,
  ): Promise<LookupResult | undefined> {
    const end = performance.now() + timeoutMs;
    for (let wait = 50; ; wait = Math.min(1_000, wait * 2)) {
      const result = await look();
      if (enough(result)) return result;
      const retryAfter = result.kind === "failed" ? (result.retryAfterMs ?? 0) : 0;
      const next = Math.max(wait, retryAfter);
      if (performance.now() + next > end) return undefined;
      await pause(next);
    }
  }

  #sandboxRequest(): PreparedRequest {
    const payload = neutralPayload.parse({
      documents: [{ sha256: sha256(sandboxPdf()).toString("hex"), fileName: "connection-check.pdf" }],
      signers: [{ email: this.#options.signerEmail ?? defaultSandboxSigner, role: "signer", order: 1 }],
      metadata: { sandbox: "true" },
    });
    const prepared = this.#provider.prepare("SEND", payload, this.#ids());
    if ("refused" in prepared) throw new RefusedError("send-unsupported", `the adapter can't send ${prepared.field}`);
    return prepared;
  }

  #ids() {
    return { tenantId: this.#options.tenantId, operationId: this.operationId };
  }

  #call(): CallContext {
    return {
      ...this.#lookupCall,
      ...this.#ids(),
      providerKey: randomUUID(),
      document: async () => sandboxPdf(),
      mayWrite: () => true,
      reportReference: async () => undefined,
    };
  }

  #note(step: VerifyStep["step"], ok: boolean, started: number, note: string): void {
    const done = { step, ok, ms: Math.round(performance.now() - started), note };
    this.steps.push(done);
    this.#options.onStep?.(done);
  }
}

function statusOf(result: LookupResult, ref: string): string | undefined {
  if (result.kind !== "found") return undefined;
  return result.matches.find((match) => match.ref === ref)?.status;
}

const others = (result: LookupResult): number => (result.kind === "found" ? (result.otherItems ?? 0) : 0);

/** The provider says in its own form that it has no such list. */
const isAbsent = (result: LookupResult): boolean => result.kind === "failed" && result.cause === "not_found";

function failureNote(result: LookupResult | undefined): string {
  if (result === undefined) return "never-asked";
  if (isAbsent(result)) return "lookup-absent";
  return result.kind === "failed" ? result.cause : "not-found-in-time";
}
