import { deepStrictEqual } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import { type Countersign, CountersignProblem, createClient, type Problem } from "@countersign/client";
import {
  claimForReconcile,
  claimForSubmit,
  confirm,
  conflict,
  getHistory,
  getOperation,
  knownReferences,
  listTickets,
  markUnknown,
  recordEvidence,
} from "@countersign/ledger";
import { newId } from "@countersign/runtime";
import { TestApi } from "./testing.js";

/** Whoever writes a row in a test. */
export const by = { tenantId: "acme", actor: "test", reason: "test" };
/** Who decides, and why. */
export const person = { who: "u-17", why: "the customer signs this one" };

/** The API with operations that need a decision, clients that may take it, and a provider that answers reads. For tests. */
export class ReviewBench {
  readonly api: TestApi;
  readonly reviewer: Countersign;
  readonly admin: Countersign;
  /** What the provider answers, by reference; 404 for any other. */
  readonly answers = new Map<string, { status: number; body?: object }>();
  /** References that the provider was asked for. */
  readonly asked: string[] = [];
  readonly #document: string;
  readonly #provider: Server;

  private constructor(api: TestApi, document: string) {
    this.api = api;
    this.#document = document;
    this.reviewer = this.client("reviewer");
    this.admin = this.client("admin");
    this.#provider = createServer((request, response) => {
      const ref = decodeURIComponent(request.url?.split("/").at(-1) ?? "");
      this.asked.push(ref);
      const answer = this.answers.get(ref) ?? { status: 404, body: { error: { code: "not_found", message: "no" } } };
      response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body ?? {}));
    });
  }

  static async start(options: { quiescenceMs?: number } = {}): Promise<ReviewBench> {
    const api = await TestApi.start(options);
    const bench = new ReviewBench(api, await api.upload());
    await new Promise<void>((resolve) => bench.#provider.listen(0, "127.0.0.1", resolve));
    const address = bench.#provider.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const baseUrl = `http://127.0.0.1:${port}`;
    await api.ledger.sql`UPDATE provider_connection SET base_url = ${baseUrl} WHERE tenant_id = 'acme'`;
    return bench;
  }

  async stop(): Promise<void> {
    this.#provider.closeAllConnections();
    await new Promise((resolve) => this.#provider.close(resolve));
    await this.api.stop();
  }

  /** The producers' client with one of the API's keys, or with a key of one's own. */
  client(key: string): Countersign {
    return createClient({ baseUrl: this.api.url, apiKey: this.api.keys[key] ?? key, pause: async () => undefined });
  }

  payload() {
    return {
      documents: [{ sha256: this.#document }],
      signers: [{ email: "signer@example.com", role: "customer", order: 1 }],
    };
  }

  async send(change: object = {}): Promise<string> {
    const intent = { intentKey: `intent-${newId()}`, action: "SEND", payload: this.payload(), ...change };
    const { body } = await this.api.plan(intent);
    return String(body.operationId);
  }

  async confirmed(): Promise<{ id: string; ref: string }> {
    const id = await this.send();
    const ref = `a_${id}`;
    const row = { ...by, operationId: id, owner: randomUUID() };
    await claimForSubmit(this.api.ledger, [{ ...row, leaseMs: 60_000 }]);
    await confirm(this.api.ledger, [
      { ...row, evidenceNo: 0, providerRef: ref, observation: {}, basis: "proof", signingStatus: "SENT" },
    ]);
    return { id, ref };
  }

  /** A confirmed SEND of which an event has shown a second request. */
  async duplicate(): Promise<{ id: string; refs: [string, string]; ticketId: string }> {
    const { id, ref } = await this.confirmed();
    const other = `b_${id}`;
    await recordEvidence(this.api.ledger.sql, { ...by, operationId: id, providerRef: other, source: "webhook" });
    return { id, refs: [ref, other], ticketId: await this.ticketOf(id, "duplicate") };
  }

  /** Takes an operation through one attempt in doubt to NEEDS_REVIEW; answers the evidence number to decide on. */
  async toReview(id: string, refs: readonly string[] = []): Promise<number> {
    const { ledger } = this.api;
    const row = { ...by, operationId: id, owner: randomUUID() };
    await claimForSubmit(ledger, [{ ...row, leaseMs: 60_000 }]);
    await markUnknown(ledger, { ...row, observation: { kind: "ambiguous" }, doubts: true });
    for (const providerRef of refs) {
      await recordEvidence(ledger.sql, { ...by, operationId: id, providerRef, source: "lookup" });
    }
    const claim = await claimForReconcile(ledger, { ...row, leaseMs: 60_000 });
    if (!claim.applied) throw new Error("not claimed");
    const reason = refs.length > 1 ? "more-than-one-match" : "unprovable";
    await conflict(ledger, { ...row, evidenceNo: claim.row.evidence_no, reason });
    return claim.row.evidence_no;
  }

  /** A SEND in NEEDS_REVIEW with a reference for each name. */
  async inReview(...names: string[]): Promise<{ id: string; refs: string[]; evidenceNo: number }> {
    const id = await this.send();
    const refs = names.map((name) => `${name}_${id}`);
    return { id, refs, evidenceNo: await this.toReview(id, refs) };
  }

  /** The open ticket of a kind about a subject; `none` where there is none. */
  async ticketOf(subjectId: string, kind: string): Promise<string> {
    const open = await listTickets(this.api.ledger, "acme", 1_000, { kind });
    return open.find((each) => each.subjectId === subjectId)?.ticketId ?? "none";
  }

  /** Which references these VOIDs are for. */
  async targetsOf(ids: readonly string[]): Promise<string[]> {
    const rows = await this.api.ledger.sql<{ target_ref: string }[]>`
      SELECT target_ref FROM signing_operation WHERE operation_id::text = ANY(string_to_array(${ids.join(",")}, ','))`;
    return rows.map((row) => row.target_ref).sort();
  }

  /** Everything of an operation that a refused decision must leave as it was. */
  async snapshot(id: string) {
    const { ledger } = this.api;
    return {
      operation: await getOperation(ledger, "acme", id),
      history: await getHistory(ledger, "acme", id),
      references: await knownReferences(ledger.sql, "acme", id),
      tickets: await listTickets(ledger, "acme", 1_000, { status: "all" }),
      counts: await this.api.counts(),
    };
  }

  /** The problem that a decision is refused with. Throws where it was not refused, or changed anything. */
  async refusal(id: string, decide: () => Promise<unknown>): Promise<Problem> {
    const before = await this.snapshot(id);
    const error = await decide().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    deepStrictEqual(await this.snapshot(id), before);
    if (!(error instanceof CountersignProblem)) throw new Error("not refused", { cause: error });
    return error.problem;
  }
}
