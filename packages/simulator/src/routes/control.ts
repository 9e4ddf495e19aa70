import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { ProviderError } from "../answer.js";
import { scriptedFaultSchema } from "../fault-plan.js";
import { isLoopback } from "../hook.js";
import { bodyBytes, jsonValue } from "../json-body.js";
import { requestView, type SigningRequest } from "../signing-request.js";
import type { Simulator } from "../simulator.js";

const IDLE_TIMEOUT_MS = 30_000;

/** One is a list of one; not a union, whose messages would name no member. */
const faultList = z.preprocess((value) => (Array.isArray(value) ? value : [value]), z.array(scriptedFaultSchema));
const advanceBody = z.strictObject({
  status: z.enum(["viewed", "signed", "completed", "declined", "expired", "withdrawn"]),
});
const clockBody = z.strictObject({ advanceMs: z.number().min(0) });
const idleQuery = z.object({ timeout_ms: z.coerce.number().positive().default(IDLE_TIMEOUT_MS) });
const resendBody = z.strictObject({ eventId: z.string() });

function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new ProviderError(422, "invalid_control", z.prettifyError(parsed.error));
  return parsed.data;
}

function controlView(request: SigningRequest) {
  const { workspace, kind, documentDigest, mails, reminders, withdrawals, events } = request;
  return {
    ...requestView(request),
    workspace,
    kind,
    document_sha256: documentDigest,
    mails,
    reminders,
    withdrawals,
    events,
  };
}

/** The audit and the strings to pull: no key needed, but only from this machine unless the options say otherwise. */
export function controlRoutes(app: FastifyInstance, simulator: Simulator): void {
  const { parts } = simulator;
  app.addHook("onRequest", async (request) => {
    if (parts.config.controlFrom === "any") return;
    const peer = (request.raw.socket.remoteAddress ?? "").replace(/^::ffff:/, "");
    if (!isLoopback(peer)) throw new ProviderError(403, "forbidden", "Only from this machine.");
  });

  app.get("/healthz", async () => ({ status: "ok" }));
  app.get("/audit", async () => simulator.audit());
  app.get("/_control/config", async () => simulator.config());
  app.post("/_control/config", async (request) => simulator.configure(jsonValue(bodyBytes(request))));
  app.get("/_control/faults", async () => parts.faults.report());
  app.post("/_control/faults", async (request) => {
    parts.faults.script(checked(faultList, jsonValue(bodyBytes(request))));
    return parts.faults.report();
  });
  app.delete("/_control/faults", async () => {
    parts.faults.clearScript();
    return parts.faults.report();
  });
  app.get("/_control/requests", async () => ({ data: [...parts.world.all()].map(controlView) }));
  app.post<{ Params: { id: string } }>("/_control/requests/:id/advance", async (request) => {
    const { status } = checked(advanceBody, jsonValue(bodyBytes(request)));
    return controlView(simulator.advance(request.params.id, status));
  });
  app.post("/_control/clock", async (request) => {
    simulator.advanceClock(checked(clockBody, jsonValue(bodyBytes(request))).advanceMs);
    return { now: new Date(parts.clock.now()).toISOString() };
  });
  app.get("/_control/idle", async (request) => {
    await simulator.waitIdle(checked(idleQuery, request.query).timeout_ms);
    return { idle: true };
  });
  app.get("/_control/hooks", async () => ({
    data: parts.webhooks.list().map(({ id, workspace, url, enabled, failuresInRow, deliveries }) => ({
      id,
      workspace,
      url,
      enabled,
      failuresInRow,
      deliveries: deliveries.map(({ eventId, type, attempts, lastStatus, lastAttemptAt, state }) => ({
        eventId,
        type,
        attempts,
        lastStatus: lastStatus ?? null,
        lastAttemptAt: lastAttemptAt === undefined ? null : new Date(lastAttemptAt).toISOString(),
        state,
      })),
    })),
  }));
  app.post<{ Params: { id: string } }>("/_control/hooks/:id/enable", async (request) => {
    parts.webhooks.enable(request.params.id);
    return { enabled: true };
  });
  app.post<{ Params: { id: string } }>("/_control/hooks/:id/resend", async (request) => {
    const { eventId } = checked(resendBody, jsonValue(bodyBytes(request)));
    parts.webhooks.resend(request.params.id, eventId);
    return { resent: true };
  });
}
