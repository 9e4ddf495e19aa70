import { randomUUID } from "node:crypto";
import {
  addOperator,
  claimForReconcile,
  claimForSubmit,
  conflict,
  createWebhookEndpoint,
  getInboxEvent,
  listTickets,
  markUnknown,
  recordApplyFailure,
  recordDelivery,
  recordEvidence,
} from "@countersign/ledger";
import { type FleetProcess, RealFleet } from "../real-processes.js";

const by = { tenantId: "acme", actor: "test", reason: "test" };

/** The console as a real process, and in its ledger what a night leaves behind. No worker runs: nothing moves. */
export class ConsoleScene {
  readonly fleet: RealFleet;
  readonly console: FleetProcess;
  readonly token: string;
  readonly viewerToken: string;

  private constructor(fleet: RealFleet, console: FleetProcess, token: string, viewerToken: string) {
    this.fleet = fleet;
    this.console = console;
    this.token = token;
    this.viewerToken = viewerToken;
  }

  static async start(): Promise<ConsoleScene> {
    const fleet = await RealFleet.start();
    const { ledger } = fleet.scene;
    const { token } = await addOperator(ledger, { name: "otto", role: "operator" });
    const viewer = await addOperator(ledger, { name: "vera", role: "viewer" });
    const started = await fleet.launch("console");
    await started.ready(60_000);
    return new ConsoleScene(fleet, started, token, viewer.token);
  }

  async #doubtful(): Promise<{ id: string; owner: string }> {
    const { ledger } = this.fleet.scene;
    const { operationId: id } = await this.fleet.scene.planSend();
    const row = { ...by, operationId: id, owner: randomUUID() };
    await claimForSubmit(ledger, [{ ...row, leaseMs: 60_000 }]);
    await markUnknown(ledger, { ...row, observation: { kind: "ambiguous", cause: "timeout" }, doubts: true });
    return { id, owner: row.owner };
  }

  /** A SEND of which nobody knows whether it went out. */
  async unknown(): Promise<string> {
    return (await this.#doubtful()).id;
  }

  /** A SEND in review, of which the provider has two requests. */
  async twoMatches(): Promise<{ id: string; refs: [string, string]; ticketId: string }> {
    const { ledger } = this.fleet.scene;
    const { id, owner } = await this.#doubtful();
    const refs: [string, string] = [`wsr_one_${id.slice(-6)}`, `wsr_two_${id.slice(-6)}`];
    for (const providerRef of refs) {
      await recordEvidence(ledger.sql, {
        ...by,
        operationId: id,
        providerRef,
        source: "lookup",
        signingStatus: "SENT",
      });
    }
    const claim = await claimForReconcile(ledger, { ...by, operationId: id, owner, leaseMs: 60_000 });
    if (!claim.applied) throw new Error("not claimed");
    const evidenceNo = claim.row.evidence_no;
    await conflict(ledger, { ...by, operationId: id, owner, evidenceNo, reason: "more-than-one-match" });
    const tickets = await listTickets(ledger, "acme", 100, { kind: "needs-review", subjectId: id });
    return { id, refs, ticketId: tickets[0]?.ticketId ?? "none" };
  }

  /** An event that could not be applied. */
  async deadLetter(): Promise<string> {
    const { ledger } = this.fleet.scene;
    const at = { tenantId: "acme", connectionId: "main" };
    const secret = "whsec_browser-test-secret-0123456789";
    const { endpointId } = await createWebhookEndpoint(ledger, { ...at, scheme: "elchi", secret });
    const recorded = await recordDelivery(ledger, {
      ...at,
      endpointId,
      providerEventId: `evt_${randomUUID()}`,
      eventType: "signing_request.viewed",
      providerRef: "wsr_dead",
      body: Buffer.from('{"id":"evt","type":"signing_request.viewed","data":{"signing_request_id":"wsr_dead"}}'),
    });
    if (recorded.kind !== "stored") throw new Error("not stored");
    const row = { tenantId: "acme", inboxId: recorded.inboxId };
    await recordApplyFailure(ledger, row, "boom", { maxFailures: 1, backoffMs: 1 });
    return recorded.inboxId;
  }

  async statusOf(inboxId: string): Promise<string | undefined> {
    return (await getInboxEvent(this.fleet.scene.ledger, "acme", inboxId))?.status;
  }

  async stop(): Promise<void> {
    await this.fleet.stop();
  }
}
