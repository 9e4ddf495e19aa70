import { type AnySql, type Ledger, run } from "./database.js";

export type WorkKind = "audit" | "poll" | "probe" | "policy";

/** Follow-up work that has no row of its own, leased to one worker. */
export interface WorkItem {
  tenantId: string;
  workItemId: string;
  kind: WorkKind;
  subjectId: string;
  dedupeKey: string;
  attempts: number;
  owner: string;
}

const claimStatement = `UPDATE work_item SET lease_owner = $3::uuid, lease_expires_at = now() + make_interval(secs => $4::float8 / 1000),
    run_after = now() + make_interval(secs => $4::float8 / 1000), attempts = attempts + 1, dispatches = 0
  WHERE tenant_id = $1 AND work_item_id = $2::uuid AND (lease_expires_at IS NULL OR lease_expires_at <= now())
    AND (not_before IS NULL OR not_before <= now())
  RETURNING tenant_id AS "tenantId", work_item_id AS "workItemId", kind, subject_id AS "subjectId", dedupe_key AS "dedupeKey", attempts,
    lease_owner AS owner`;

/** Leases a work item; undefined where it is another's, not yet due, or done. */
export async function claimWork(
  ledger: Ledger,
  tenantId: string,
  workItemId: string,
  owner: string,
  leaseMs: number,
): Promise<WorkItem | undefined> {
  const [row] = await run<WorkItem>(ledger.sql, claimStatement, [tenantId, workItemId, owner, leaseMs]);
  return row;
}

/** Deletes a work item with its result, in the transaction that stores it; false where the lease is no longer this one's. */
export async function finishWork(sql: AnySql, item: WorkItem): Promise<boolean> {
  const result = await sql`
    DELETE FROM work_item WHERE tenant_id = ${item.tenantId} AND work_item_id = ${item.workItemId} AND lease_owner = ${item.owner}`;
  return result.count === 1;
}

/** Gives a work item back until `delayMs` from now. */
export async function postponeWork(sql: AnySql, item: WorkItem, delayMs: number): Promise<void> {
  await sql`
    UPDATE work_item SET lease_owner = NULL, lease_expires_at = NULL,
      run_after = now() + make_interval(secs => ${delayMs}::float8 / 1000), not_before = now() + make_interval(secs => ${delayMs}::float8 / 1000)
    WHERE tenant_id = ${item.tenantId} AND work_item_id = ${item.workItemId} AND lease_owner = ${item.owner}`;
}
