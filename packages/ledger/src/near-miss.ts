import { randomUUID } from "node:crypto";
import type { Ledger } from "./database.js";

/** A guard that worked. `woke-after-lease`: the sender came too late and sent nothing; `claim-lost`: another one was sending. */
export const nearMissKinds = ["woke-after-lease", "claim-lost", "claim-gone", "stale-verdict"] as const;
export type NearMissKind = (typeof nearMissKinds)[number];

export interface NearMiss {
  kind: NearMissKind;
  at: string;
  attemptNo: number;
  actor: string;
}

/** Stands in the operation's timeline. Never touches the operation's row, which belongs to whoever won. */
export async function recordNearMiss(
  ledger: Ledger,
  miss: {
    tenantId: string;
    operationId: string;
    kind: NearMissKind;
    attemptNo: number;
    actor: string;
    details?: object;
  },
): Promise<void> {
  await ledger.sql`
    INSERT INTO near_miss (tenant_id, operation_id, near_miss_id, kind, attempt_no, actor, details)
    VALUES (${miss.tenantId}, ${miss.operationId}, ${randomUUID()}, ${miss.kind}, ${miss.attemptNo}, ${miss.actor},
      ${JSON.stringify(miss.details ?? {})}::text::jsonb)`;
}

/** An operation's near misses, in order. */
export async function getNearMisses(ledger: Ledger, tenantId: string, operationId: string): Promise<NearMiss[]> {
  return await ledger.sql<NearMiss[]>`
    SELECT kind, at, attempt_no AS "attemptNo", actor FROM near_miss
    WHERE tenant_id = ${tenantId} AND operation_id = ${operationId} ORDER BY at, near_miss_id`;
}
