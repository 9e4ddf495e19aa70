import type { PlanOutcome } from "@countersign/ledger";
import { type Action, recordSpan } from "@countersign/runtime";
import type { ApiDeps } from "./deps.js";
import { toProblem } from "./problem.js";

/** A plan as it was asked for. */
export interface PlanAsked {
  readonly tenant: string;
  readonly action: Action;
  /** The caller's own `traceparent` header. */
  readonly traceparent: string | undefined;
  /** Unix time in ms. */
  readonly startedAt: number;
}

type Planned = Exclude<PlanOutcome, { kind: "conflict" }>;

/**
 * One line and the first span of the trace for every operation that a plan made; what it found already there adds a span to
 * that trace.
 */
export function reportPlanned(deps: Pick<ApiDeps, "logger">, asked: PlanAsked, planned: Planned): void {
  const ms = Date.now() - asked.startedAt;
  const others = planned.kind === "created" ? planned.alsoPlanned : [];
  for (const { operationId, state } of [planned.operation, ...others]) {
    const own = operationId === planned.operation.operationId;
    // What was planned along with it (a VOID of what it supersedes) has an action of its own.
    const facts = { tenant: asked.tenant, operation: operationId, ...(own ? { action: asked.action } : {}) };
    const line = { ...facts, outcome: planned.kind, state, ms };
    if (planned.kind === "created") deps.logger.info(line, "planned");
    recordSpan({
      name: "plan",
      of: operationId,
      first: planned.kind === "created",
      startedAt: asked.startedAt,
      facts: line,
      related: own ? [] : [planned.operation.operationId],
      traceparent: asked.traceparent,
    });
  }
}

/** A refused plan has no operation: its span is a trace of its own, linked to the caller's. */
export function reportRefused(asked: PlanAsked, error: unknown): void {
  const problem = toProblem(error);
  const conflicting = problem?.extra.operationId;
  recordSpan({
    name: "plan",
    startedAt: asked.startedAt,
    traceparent: asked.traceparent,
    related: typeof conflicting === "string" ? [conflicting] : [],
    facts: { tenant: asked.tenant, action: asked.action, outcome: problem?.code ?? "failed" },
  });
}
