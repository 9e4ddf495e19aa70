import { newId } from "@countersign/runtime";
import type { Ledger } from "./database.js";

/** Something that somebody is about to do through the console. */
export interface NewConsoleAction {
  operatorId: string;
  operator: string;
  role: string;
  tenantId: string | null;
  /** Method and route pattern. */
  action: string;
  subjectId: string | null;
  why: string | null;
}

/** An action as the log shows it; `status` is null where nobody knows how it ended. */
export interface ConsoleAction {
  actionId: string;
  at: string;
  operator: string;
  role: string;
  tenantId: string | null;
  action: string;
  subjectId: string | null;
  why: string | null;
  status: number | null;
}

/** Records what is about to be done, and returns its id: what can't be recorded is not done. */
export async function beginConsoleAction(ledger: Ledger, action: NewConsoleAction): Promise<string> {
  const actionId = newId();
  await ledger.sql`
    INSERT INTO console_action (action_id, operator_id, operator, role, tenant_id, action, subject_id, why)
    VALUES (${actionId}, ${action.operatorId}, ${action.operator}, ${action.role}, ${action.tenantId}, ${action.action},
      ${action.subjectId}, ${action.why})`;
  return actionId;
}

/** Adds how it ended, once. */
export async function endConsoleAction(ledger: Ledger, actionId: string, status: number): Promise<void> {
  await ledger.sql`
    UPDATE console_action SET status = ${status}, finished_at = now()
    WHERE action_id = ${actionId} AND finished_at IS NULL`;
}

/** What was done, the newest first; only of these tenants, where any are named. */
export async function listConsoleActions(
  ledger: Ledger,
  filter: { tenants: readonly string[] | null; subjectId?: string; cursor?: string; limit: number },
): Promise<ConsoleAction[]> {
  const { sql } = ledger;
  const { tenants, subjectId, cursor, limit } = filter;
  return await sql<ConsoleAction[]>`
    SELECT action_id AS "actionId", at, operator, role, tenant_id AS "tenantId", action, subject_id AS "subjectId", why, status
    FROM console_action
    WHERE ${tenants === null ? sql`true` : sql`tenant_id IN (SELECT jsonb_array_elements_text(${JSON.stringify(tenants)}::text::jsonb))`}
      AND ${subjectId === undefined ? sql`true` : sql`subject_id = ${subjectId}`}
      AND ${cursor === undefined ? sql`true` : sql`action_id < ${cursor}`}
    ORDER BY action_id DESC LIMIT ${limit}`;
}
