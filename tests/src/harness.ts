import { randomBytes } from "node:crypto";
import { type ReconcileDeps, reconcileOperation } from "@countersign/app-reconcile-worker";
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
} from "@countersign/ledger";
import {
  assembleBody,
  createProviders,
  documentsOf,
  HttpTransport,
  type PreparedRequest,
  type SignatureProvider,
} from "@countersign/provider";
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
  readonly provider: SignatureProvider;
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
    const logger = createLogger({ name: "scene", destination: { write: (line) => void this.logLines.push(line) } });
    const common = {
      ledger: this.ledger,
      provider: (name: string) => (name === provider.name ? provider : undefined),
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
    } = {},
  ): Promise<PlanOutcome & { operationId: string }> {
    const tenantId = options.tenantId ?? "acme";
    const operationId = newId();
    const payload = options.payload ?? this.payload();
    const outcome = await plan(this.ledger, {
      tenantId,
      operationId,
      intentKey: options.intentKey ?? `intent-${operationId}`,
      approved: { action: "SEND", connectionId: "main", payload },
      ...this.prepared(this.provider.prepare("SEND", payload, { tenantId, operationId })),
      ...(options.supersedes === undefined
        ? {}
        : {
            supersedes: {
              operationId: options.supersedes,
              mode: options.mode ?? "void-first",
              voidRequest: (ids: { tenantId: string; operationId: string }) =>
                this.prepared(this.provider.prepare("VOID", { schemaVersion: 1 }, ids)),
            },
          }),
    });
    return {
      ...outcome,
      operationId: outcome.kind === "conflict" ? outcome.operationId : outcome.operation.operationId,
    };
  }

  async planVoid(target: string, tenantId = "acme"): Promise<string> {
    const operationId = newId();
    await plan(this.ledger, {
      tenantId,
      operationId,
      intentKey: `void-${operationId}`,
      approved: {
        action: "VOID",
        connectionId: "main",
        payload: { schemaVersion: 1 },
        target: { operationId: target },
      },
      ...this.prepared(this.provider.prepare("VOID", { schemaVersion: 1 }, { tenantId, operationId })),
    });
    return operationId;
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
  const { sweepExpiredLeases } = await import("@countersign/ledger");
  await sweepExpiredLeases(ledger, 100, 1_000);
}
