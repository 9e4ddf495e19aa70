import { randomBytes } from "node:crypto";
import { type ReconcileDeps, reconcileOperation, runWork } from "@countersign/app-reconcile-worker";
import { type SubmitDeps, submitOperation } from "@countersign/app-submit-worker";
import { createTestDatabase, type PostgresServer, startPostgres } from "@countersign/devstack";
import {
  createConnection,
  createTenant,
  getHistory,
  getOperation,
  type HistoryLine,
  Ledger,
  migrate,
  normalisePayload,
  type OperationView,
  type PlanOutcome,
  plan,
  postgresDocumentStore,
  recordLookupVerification,
  sweepExpiredLeases,
  visitDueOperations,
  visitDueWork,
} from "@countersign/ledger";
import {
  assembleBody,
  createProviders,
  documentsOf,
  HttpTransport,
  type PreparedRequest,
  type SignatureProvider,
} from "@countersign/provider";
import { BareProvider, OddCodesProvider, PolledProvider, SafeKeyProvider } from "@countersign/provider/testing";
import { createLogger, type NeutralPayload, neutralPayload, newId } from "@countersign/runtime";
import { plainPdf, type RunningSimulator, startSimulator } from "@countersign/simulator";
import { connectionCache } from "@countersign/worker";

/** Windows shrunk in proportion, so that a fault's whole story takes seconds. All ms. */
export const fastWindows = {
  deadlineMs: 300,
  marginMs: 100,
  leaseMs: 1_000,
  lookupLagMs: 100,
  quiescenceMs: 800,
  spacingMs: 50,
  confirmations: 2,
  eventWaitMs: 300,
  absenceMaxAgeMs: 10_000,
  pollMs: 150,
  circuit: { failures: 1_000, probeMs: 100 },
};

export const pdf = (): Buffer => Buffer.from(plainPdf(["A contract"]));

/**
 * Ledger on real PostgreSQL, the simulator over real sockets, and the two workers' own functions called in turn: one
 * SEND's whole story without queues in between.
 */
export class Scene {
  readonly server: PostgresServer;
  readonly databaseUrl: string;
  readonly encryptionKey: string;
  readonly ledger: Ledger;
  readonly simulator: RunningSimulator;
  /** WeSign. */
  readonly provider: SignatureProvider;
  readonly adapters: ReadonlyMap<string, SignatureProvider>;
  readonly #providerOf = new Map<string, string>();
  readonly submit: SubmitDeps;
  readonly reconcile: ReconcileDeps;
  readonly logLines: string[] = [];
  readonly #transport: HttpTransport;
  #documentSha256 = "";

  private constructor(server: PostgresServer, databaseUrl: string, encryptionKey: string, simulator: RunningSimulator) {
    this.server = server;
    this.databaseUrl = databaseUrl;
    this.encryptionKey = encryptionKey;
    this.simulator = simulator;
    this.ledger = new Ledger({ databaseUrl, encryptionKey, maxConnections: 20 });
    this.#transport = new HttpTransport({ connections: 64 });
    const provider = createProviders(this.#transport).byName("wesign");
    if (provider === undefined) throw new Error("the WeSign adapter is missing");
    this.provider = provider;
    const adapters: readonly SignatureProvider[] = [
      provider,
      new BareProvider(this.#transport),
      new OddCodesProvider(this.#transport),
      new SafeKeyProvider(this.#transport),
      new PolledProvider(this.#transport),
    ];
    this.adapters = new Map(adapters.map((adapter) => [adapter.name, adapter]));
    const logger = createLogger({ name: "scene", destination: { write: (line) => void this.logLines.push(line) } });
    const common = {
      ledger: this.ledger,
      provider: (name: string) => this.adapters.get(name),
      connection: connectionCache(this.ledger, 0),
      handOver: async () => undefined,
      logger,
    };
    this.submit = { ...common, ...fastWindows, documents: postgresDocumentStore(this.ledger) };
    this.reconcile = { ...common, ...fastWindows, backoff: { baseMs: 20, maxMs: 100 } };
  }

  static async start(): Promise<Scene> {
    const [server, simulator] = await Promise.all([
      startPostgres({ durable: false }),
      startSimulator({
        workspaces: [{ name: "one", keys: ["wsk_test"] }],
        staleLockMs: 600,
        faults: { slowCommitMs: 500, slowCommitHoldMs: 5_000 },
      }),
    ]);
    const { url } = await createTestDatabase(server.url);
    await migrate(url);
    const scene = new Scene(server, url, randomBytes(32).toString("base64"), simulator);
    for (const tenantId of ["acme", "bravo"]) {
      await createTenant(scene.ledger, { tenantId, ticketOwners: { default: "contracts-team" } });
      await createConnection(scene.ledger, {
        tenantId,
        connectionId: "main",
        provider: "wesign",
        baseUrl: simulator.url,
        credential: "wsk_test",
        isDefault: true,
      });
      await recordLookupVerification(scene.ledger, tenantId, "main", { verified: true, by: "test", note: "test" });
      scene.#documentSha256 = await postgresDocumentStore(scene.ledger).put(tenantId, pdf());
    }
    return scene;
  }

  async stop(): Promise<void> {
    await this.simulator.stop();
    await this.#transport.close();
    await this.ledger.close();
    await this.server.stop();
  }

  payload(change: Partial<NeutralPayload> = {}): NeutralPayload {
    return normalisePayload(
      neutralPayload.parse({
        documents: [{ sha256: this.#documentSha256 }],
        signers: [{ email: "signer@example.com", role: "customer", order: 1 }],
        ...change,
      }),
    );
  }

  adapter(connectionId: string): SignatureProvider {
    const adapter = this.adapters.get(this.#providerOf.get(connectionId) ?? "wesign");
    if (adapter === undefined) throw new Error("no such adapter");
    return adapter;
  }

  /** Another connection of acme, in a workspace of its own at the provider. */
  async connect(
    connectionId: string,
    options: {
      provider?: string;
      verified?: boolean;
      list?: boolean;
      metadataLookup?: boolean;
      ratePerSecond?: number;
    } = {},
  ): Promise<void> {
    const provider = options.provider ?? "wesign";
    this.#providerOf.set(connectionId, provider);
    this.simulator.configure({ workspaces: [{ name: connectionId, keys: [`wsk_${connectionId}`] }] });
    await createConnection(this.ledger, {
      tenantId: "acme",
      connectionId,
      provider,
      baseUrl: this.simulator.url,
      credential: `wsk_${connectionId}`,
      ...(options.metadataLookup === undefined ? {} : { metadataLookup: options.metadataLookup }),
      ...(options.ratePerSecond === undefined ? {} : { ratePerSecond: options.ratePerSecond }),
    });
    if (options.verified ?? provider === "wesign") {
      const list = options.list === undefined ? {} : { list: options.list };
      await recordLookupVerification(this.ledger, "acme", connectionId, {
        verified: true,
        by: "test",
        note: "test",
        ...list,
      });
    }
  }

  prepared(request: ReturnType<SignatureProvider["prepare"]>): { request: PreparedRequest; bodyDigest: Buffer } {
    if ("refused" in request) throw new Error(`refused: ${request.field}`);
    const documents = new Map(documentsOf(request).map((digest) => [digest, pdf()]));
    return { request, bodyDigest: Buffer.from(assembleBody(request, documents).digest, "hex") };
  }

  async planSend(
    options: {
      tenantId?: string;
      intentKey?: string;
      payload?: NeutralPayload;
      supersedes?: string;
      mode?: "void-first" | "send-first";
      connectionId?: string;
    } = {},
  ): Promise<PlanOutcome & { operationId: string }> {
    const tenantId = options.tenantId ?? "acme";
    const operationId = newId();
    const payload = options.payload ?? this.payload();
    const connectionId = options.connectionId ?? "main";
    const adapter = this.adapter(connectionId);
    const outcome = await plan(this.ledger, {
      tenantId,
      operationId,
      intentKey: options.intentKey ?? `intent-${operationId}`,
      approved: { action: "SEND", connectionId, payload },
      ...this.prepared(adapter.prepare("SEND", payload, { tenantId, operationId })),
      ...(options.supersedes === undefined
        ? {}
        : {
            supersedes: {
              operationId: options.supersedes,
              mode: options.mode ?? "void-first",
              voidRequest: (ids: { tenantId: string; operationId: string }) =>
                this.prepared(adapter.prepare("VOID", { schemaVersion: 1 }, ids)),
            },
          }),
    });
    return {
      ...outcome,
      operationId: outcome.kind === "conflict" ? outcome.operationId : outcome.operation.operationId,
    };
  }

  async planVoid(target: string, tenantId = "acme"): Promise<string> {
    return await this.planOn("VOID", target, { tenantId });
  }

  async planOn(
    action: "VOID" | "RESEND" | "FINALIZE",
    target: string,
    options: { tenantId?: string; connectionId?: string } = {},
  ): Promise<string> {
    const { tenantId = "acme", connectionId = "main" } = options;
    const operationId = newId();
    await plan(this.ledger, {
      tenantId,
      operationId,
      intentKey: `${action}-${operationId}`,
      approved: { action, connectionId, payload: { schemaVersion: 1 }, target: { operationId: target } },
      ...this.prepared(this.adapter(connectionId).prepare(action, { schemaVersion: 1 }, { tenantId, operationId })),
    });
    return operationId;
  }

  /** Makes the request of a VOID that the system plans itself. */
  voidRequest(connectionId = "main") {
    return (ids: { tenantId: string; operationId: string }) =>
      this.prepared(this.adapter(connectionId).prepare("VOID", { schemaVersion: 1 }, ids));
  }

  /** Runs the work items of a kind for a subject that are due now; how many. */
  async work(kind: string, subjectId: string, deps: ReconcileDeps = this.reconcile): Promise<string[]> {
    const items = await this.ledger.sql<{ id: string }[]>`
      SELECT work_item_id AS id FROM work_item WHERE tenant_id = 'acme' AND kind = ${kind} AND subject_id = ${subjectId} AND not_before <= now()
      ORDER BY not_before`;
    const ends: string[] = [];
    for (const { id } of items) {
      const end = await runWork(deps, "acme", id);
      ends.push(end.kind === "not-claimed" ? end.kind : end.what);
    }
    return ends;
  }

  async operation(operationId: string, tenantId = "acme"): Promise<OperationView> {
    const operation = await getOperation(this.ledger, tenantId, operationId);
    if (operation === undefined) throw new Error("no such operation");
    return operation;
  }

  history(operationId: string, tenantId = "acme"): Promise<HistoryLine[]> {
    return getHistory(this.ledger, tenantId, operationId);
  }

  /** Sweeps, submits and reconciles what is due until the operation is resolved or the time is over. */
  async settle(operationId: string, options: { tenantId?: string; timeoutMs?: number } = {}): Promise<OperationView> {
    const tenantId = options.tenantId ?? "acme";
    const until = performance.now() + (options.timeoutMs ?? 12_000);
    for (;;) {
      await this.ledger.sql`
        UPDATE signing_operation SET due_at = now() WHERE operation_id = ${operationId} AND state IN ('PLANNED','UNKNOWN') AND due_at IS NOT NULL`;
      const operation = await this.operation(operationId, tenantId);
      switch (operation.state) {
        case "PLANNED":
          if (operation.openDependencies === 0) await submitOperation(this.submit, tenantId, operationId);
          break;
        case "UNKNOWN":
          await reconcileOperation(this.reconcile, tenantId, operationId);
          break;
        case "IN_FLIGHT":
        case "RECONCILING":
          await sweep(this.ledger);
          break;
        default:
          return operation;
      }
      if (performance.now() > until) return await this.operation(operationId, tenantId);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** What the fleet's loops and queues do, in this process: visits what is due and runs it, `sideBySide` at once. */
  async drive(done: () => Promise<boolean>, options: { timeoutMs: number; sideBySide?: number }): Promise<void> {
    const until = performance.now() + options.timeoutMs;
    const running = new Set<Promise<unknown>>();
    const start = async (work: () => Promise<unknown>): Promise<void> => {
      while (running.size >= (options.sideBySide ?? 20)) await Promise.race(running);
      const one: Promise<unknown> = work().finally(() => running.delete(one));
      running.add(one);
    };
    while (!(await done())) {
      if (performance.now() > until) throw new Error("not done in time");
      await sweepExpiredLeases(this.ledger, 200, 500);
      for (const job of await visitDueOperations(this.ledger, 200, 500)) {
        const { tenantId, subjectId } = job;
        if (job.queue === "submit") await start(() => submitOperation(this.submit, tenantId, subjectId));
        else await start(() => reconcileOperation(this.reconcile, tenantId, subjectId));
      }
      for (const job of await visitDueWork(this.ledger, 200, 500)) {
        await start(() => runWork(this.reconcile, job.tenantId, job.subjectId));
      }
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    await Promise.all(running);
  }

  /** One submission, whatever becomes of it. */
  async submitOnce(operationId: string, tenantId = "acme"): Promise<void> {
    await submitOperation(this.submit, tenantId, operationId);
  }

  /** Requests at the provider that carry this operation's id. */
  requests(operationId: string): { id: string; status: string }[] {
    return this.simulator.audit().operations.find((each) => each.operationId === operationId)?.requests ?? [];
  }

  /** Calls that reached the provider about this operation, by endpoint. */
  calls(operationId: string): Readonly<Record<string, number | undefined>> {
    return this.simulator.audit().operations.find((each) => each.operationId === operationId)?.calls ?? {};
  }

  /** Somebody makes a second request at the provider that carries our metadata. */
  async makeAgain(operationId: string): Promise<void> {
    const { connectionId } = await this.operation(operationId);
    const form = new FormData();
    form.set("file", new Blob([new Uint8Array(pdf())], { type: "application/pdf" }), "contract.pdf");
    form.set("signers", JSON.stringify([{ email: "signer@example.com", role: "customer" }]));
    form.set("metadata", JSON.stringify({ operation_id: operationId, tenant: "acme" }));
    const key = connectionId === "main" ? "wsk_test" : `wsk_${connectionId}`;
    const answer = await fetch(`${this.simulator.url}/v1/signing-requests`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: form,
    });
    if (answer.status !== 201) throw new Error(`the second request was answered ${answer.status}`);
  }

  /** Somebody stages a second document at the provider that carries our metadata; its reference. */
  async stageAgain(operationId: string): Promise<string> {
    const answer = await fetch(`${this.simulator.url}/v1/templates/tpl_contract/instantiate`, {
      method: "POST",
      headers: { authorization: "Bearer wsk_test", "content-type": "application/json" },
      body: JSON.stringify({
        signers: [{ email: "signer@example.com", role: "customer" }],
        metadata: { operation_id: operationId, tenant: "acme" },
        review: true,
      }),
    });
    const body: unknown = await answer.json();
    if (typeof body !== "object" || body === null || !("id" in body) || typeof body.id !== "string") {
      throw new Error(`staging was answered ${answer.status}`);
    }
    return body.id;
  }

  /** What the provider's own books say of an operation. */
  books(operationId: string): { requests: number; arrivals: number; mails: number; withdrawals: number } {
    const entry = this.simulator.audit().operations.find((each) => each.operationId === operationId);
    return {
      requests: entry?.requests.length ?? 0,
      arrivals: entry?.arrivals ?? 0,
      mails: entry?.mails ?? 0,
      withdrawals: entry?.withdrawals ?? 0,
    };
  }
}

async function sweep(ledger: Ledger): Promise<void> {
  await sweepExpiredLeases(ledger, 100, 1_000);
}
