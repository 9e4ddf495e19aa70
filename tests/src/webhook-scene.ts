import { createHmac, randomUUID } from "node:crypto";
import { createWebhookEndpoint } from "@countersign/ledger";
import { type FleetProcess, pause, RealFleet, until } from "./real-processes.js";

const secret = "whsec_crash-test-secret-0123456789abcdef";

/** One event as its sender holds it: the same id and body on every attempt. */
export interface SentEvent {
  readonly eventId: string;
  readonly operationId: string;
  readonly providerRef: string;
  readonly body: string;
}

/** What has been committed about one event, counted by triggers: what is done twice is seen twice. */
export interface Effects {
  /** Rows inserted into the inbox. */
  stored: number;
  /** Times that its row was ended, and how. */
  settled: string[];
  /** Changes of the signing row's status or of its moment. */
  statusChanges: string[];
  /** Reasons in its operation's history that speak of an event. */
  evidence: string[];
}

/** However busy the machine is, no call is given up: nobody would look for its outcome here. */
const patientWindows = { PROVIDER_TIMEOUT_MS: "10000", LEASE_MS: "20000", QUIESCENCE_MS: "21000" };

const auditDefinitions = `
  CREATE TABLE test_effect (kind text NOT NULL, subject text NOT NULL, detail text NOT NULL);
  CREATE FUNCTION test_audit_inbox() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN INSERT INTO test_effect VALUES ('stored', NEW.provider_event_id, NEW.status);
    ELSIF NEW.status NOT IN ('RECEIVED','WAITING') THEN INSERT INTO test_effect VALUES ('settled', NEW.provider_event_id, NEW.status);
    END IF; RETURN NULL; END $$;
  CREATE FUNCTION test_audit_signing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO test_effect VALUES ('status', NEW.provider_ref, COALESCE(OLD.status, 'none') || ' to ' || COALESCE(NEW.status, 'none'));
    RETURN NULL; END $$;
  CREATE FUNCTION test_audit_history() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO test_effect VALUES ('evidence', NEW.operation_id::text, NEW.reason); RETURN NULL; END $$;
  CREATE TRIGGER test_audit AFTER INSERT OR UPDATE OF status ON webhook_inbox FOR EACH ROW EXECUTE FUNCTION test_audit_inbox();
  CREATE TRIGGER test_audit AFTER UPDATE ON contract_signing FOR EACH ROW
    WHEN (NEW.status IS DISTINCT FROM OLD.status OR NEW.status_at IS DISTINCT FROM OLD.status_at) EXECUTE FUNCTION test_audit_signing();
  CREATE TRIGGER test_audit AFTER INSERT ON operation_event FOR EACH ROW
    WHEN (NEW.reason LIKE 'event-%') EXECUTE FUNCTION test_audit_history();`;

/**
 * A fleet with an endpoint, SENDs whose requests the provider holds, a sender that keeps to the delivery contract, and
 * triggers that count every committed effect of an event.
 */
export class WebhookScene {
  readonly fleet: RealFleet;
  readonly path: string;
  #operations: { operationId: string; providerRef: string }[] = [];
  #doubtful: { operationId: string; providerRef: string }[] = [];

  private constructor(fleet: RealFleet, path: string) {
    this.fleet = fleet;
    this.path = path;
  }

  /**
   * @param sends.confirmed SENDs that are CONFIRMED with their reference
   * @param sends.doubtful SENDs whose answers were lost: UNKNOWN, while the provider holds their requests
   */
  static async start(sends: { confirmed: number; doubtful?: number }): Promise<WebhookScene> {
    const fleet = await RealFleet.start();
    const { ledger } = fleet.scene;
    await ledger.sql.unsafe(auditDefinitions);
    const { path } = await createWebhookEndpoint(ledger, {
      tenantId: "acme",
      connectionId: "main",
      scheme: "elchi",
      secret,
    });
    const scene = new WebhookScene(fleet, path);
    const patient = await fleet.spawn("submit-worker", "main.js", patientWindows);
    const confirmed = await fleet.send(sends.confirmed);
    await fleet.allIn(confirmed, "CONFIRMED");
    await patient.kill("SIGTERM");
    const worker = await fleet.spawn("submit-worker", "main.js", { CIRCUIT_FAILURES: "1000" });
    const doubtful = await fleet.send(sends.doubtful ?? 0, (operationId) =>
      fleet.scene.simulator.script({ kind: "lost-response", operationId }),
    );
    if (doubtful.length > 0) await fleet.allIn(doubtful, "UNKNOWN");
    await worker.kill("SIGTERM");
    const request = (operationId: string) => ({
      operationId,
      providerRef: fleet.scene.requests(operationId)[0]?.id ?? "",
    });
    scene.#operations = confirmed.map(request);
    scene.#doubtful = doubtful.map(request);
    return scene;
  }

  /** What the provider will say next of the n-th confirmed SEND. */
  event(index: number, word: "viewed" | "signed" | "completed"): SentEvent {
    return makeEvent(this.#operations[index], word, false);
  }

  /** An event of the next confirmed SEND, which no other event speaks of. */
  nextEvent(): SentEvent {
    return makeEvent(this.#operations.pop(), "completed", false);
  }

  /** An event of the next SEND in doubt; with our metadata it is evidence, without it waits for its reference. */
  nextDoubtful(withMetadata: boolean): SentEvent {
    return makeEvent(this.#doubtful.pop(), "viewed", withMetadata);
  }

  /** One attempt of the sender's: the status answered, undefined where none came. */
  async deliver(to: { url: string }, event: SentEvent): Promise<number | undefined> {
    try {
      const answer = await fetch(`${to.url}${this.path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "elchi-signature": sign(event.body) },
        body: event.body,
        signal: AbortSignal.timeout(10_000),
      });
      await answer.arrayBuffer();
      return answer.status;
    } catch (error) {
      if (error instanceof TypeError || (error instanceof Error && error.name === "TimeoutError")) return undefined;
      throw error;
    }
  }

  /** Attempts until one is acknowledged; how many it took. */
  async deliverUntilAcknowledged(to: { url: string }, event: SentEvent, timeoutMs = 30_000): Promise<number> {
    const end = performance.now() + timeoutMs;
    for (let attempts = 1; ; attempts += 1) {
      const status = await this.deliver(to, event);
      if (acknowledged(status)) return attempts;
      if (performance.now() > end) throw new Error(`still answered ${status ?? "by nobody"}`);
      await pause(50);
    }
  }

  /** The bytes of one attempt. */
  request(event: SentEvent): { head: string; body: string } {
    const lines = [
      `POST ${this.path} HTTP/1.1`,
      "host: 127.0.0.1",
      "content-type: application/json",
      `elchi-signature: ${sign(event.body)}`,
      `content-length: ${Buffer.byteLength(event.body)}`,
    ];
    return { head: `${lines.join("\r\n")}\r\n\r\n`, body: event.body };
  }

  /** The inbox row as anybody may see it. */
  async inbox(event: SentEvent): Promise<{ inboxId: string; status: string; dueInMs: number | null } | undefined> {
    const [row] = await this.fleet.scene.ledger.sql<{ inboxId: string; status: string; dueInMs: number | null }[]>`
      SELECT inbox_id AS "inboxId", status, (extract(epoch FROM due_at - clock_timestamp()) * 1000)::float8 AS "dueInMs"
      FROM webhook_inbox WHERE provider_event_id = ${event.eventId}`;
    return row;
  }

  /** Waits until every event's row is in this status. */
  async allInbox(events: readonly SentEvent[], status: string, timeoutMs = 20_000): Promise<void> {
    const ids = JSON.stringify(events.map(({ eventId }) => eventId));
    await until(
      async () => {
        const rows = await this.fleet.scene.ledger.sql<{ status: string; count: number }[]>`
          SELECT status, count(*)::int AS count FROM webhook_inbox
          WHERE provider_event_id IN (SELECT jsonb_array_elements_text(${ids}::text::jsonb)) GROUP BY status`;
        return Object.fromEntries(rows.map((row) => [row.status, row.count]));
      },
      (counts) => counts[status] === events.length,
      timeoutMs,
    );
  }

  async effects(event: SentEvent): Promise<Effects> {
    const rows = await this.fleet.scene.ledger.sql<{ kind: string; detail: string }[]>`
      SELECT kind, detail FROM test_effect WHERE subject IN (${event.eventId}, ${event.providerRef}, ${event.operationId})`;
    const of = (kind: string): string[] => rows.filter((row) => row.kind === kind).map((row) => row.detail);
    return {
      stored: of("stored").length,
      settled: of("settled"),
      statusChanges: of("status"),
      evidence: of("evidence"),
    };
  }

  /** Everything that was committed about events, as numbers. */
  async totals(): Promise<Record<string, number>> {
    const rows = await this.fleet.scene.ledger.sql<{ kind: string; count: number }[]>`
      SELECT kind, count(*)::int AS count FROM test_effect GROUP BY kind`;
    return Object.fromEntries(rows.map((row) => [row.kind, row.count]));
  }

  ingress(env: Record<string, string> = {}): Promise<FleetProcess> {
    return this.fleet.spawn("webhook-receiver", "ingress-main.js", env);
  }

  applier(env: Record<string, string> = {}): Promise<FleetProcess> {
    return this.fleet.spawn("webhook-receiver", "apply-main.js", env);
  }

  stop(): Promise<void> {
    return this.fleet.stop();
  }
}

export const acknowledged = (status: number | undefined): boolean =>
  status !== undefined && status >= 200 && status < 300;

function makeEvent(
  request: { operationId: string; providerRef: string } | undefined,
  word: string,
  withMetadata: boolean,
): SentEvent {
  if (request === undefined || request.providerRef === "") throw new Error("no SEND is left for another event");
  const eventId = `evt_${randomUUID()}`;
  const body = JSON.stringify({
    id: eventId,
    type: `signing_request.${word}`,
    created_at: "2026-11-30T00:00:00.000Z",
    data: {
      signing_request_id: request.providerRef,
      document_id: "doc_1",
      status: word,
      ...(withMetadata ? { metadata: { operation_id: request.operationId, tenant: "acme" } } : {}),
    },
  });
  return { eventId, ...request, body };
}

/** A fresh signature, as on every attempt. */
function sign(body: string): string {
  const at = Math.floor(Date.now() / 1_000);
  return `t=${at},v1=${createHmac("sha256", secret).update(`${at}.${body}`).digest("hex")}`;
}
