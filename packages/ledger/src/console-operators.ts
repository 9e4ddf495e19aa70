import { createHash, randomBytes } from "node:crypto";
import { newId } from "@countersign/runtime";
import type { Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";

export const operatorRoles = ["viewer", "operator"] as const;
export type OperatorRole = (typeof operatorRoles)[number];

/** Somebody who may log in to the console. */
export interface ConsoleOperator {
  operatorId: string;
  name: string;
  role: OperatorRole;
  /** null: every tenant. */
  tenants: string[] | null;
}

export interface ListedOperator extends ConsoleOperator {
  createdAt: string;
  revokedAt: string | null;
}

const digestOf = (token: string): Buffer => createHash("sha256").update(token).digest();

/**
 * Lets somebody in. The token is returned once and stored only as a digest. Throws `operator-name` for a name that is no
 * id, and not-found for a tenant that does not exist.
 */
export async function addOperator(
  ledger: Ledger,
  operator: { name: string; role: OperatorRole; tenants?: readonly string[] },
): Promise<{ operatorId: string; token: string }> {
  const { name, role, tenants } = operator;
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name)) {
    throw new PlanRefusedError("operator-name", "the name must be 1 to 63 of letters, digits, '.', '_' and '-'", {
      field: "name",
    });
  }
  for (const tenantId of tenants ?? []) {
    const [row] = await ledger.sql`SELECT 1 FROM tenant WHERE tenant_id = ${tenantId}`;
    if (row === undefined) throw new NotFoundError("tenant");
  }
  const operatorId = newId();
  const token = `cso_${randomBytes(32).toString("base64url")}`;
  await ledger.sql`
    INSERT INTO console_operator (operator_id, name, role, tenants, token_hash)
    VALUES (${operatorId}, ${name}, ${role}, string_to_array(${tenants === undefined ? null : tenants.join(",")}, ','), ${digestOf(token)})`;
  return { operatorId, token };
}

const columns = `operator_id AS "operatorId", name, role, to_jsonb(tenants) AS tenants`;

/** Who was let in, the revoked ones too, in the order of their adding. */
export async function listOperators(ledger: Ledger): Promise<ListedOperator[]> {
  return await ledger.sql<ListedOperator[]>`
    SELECT ${ledger.sql.unsafe(columns)}, created_at AS "createdAt", revoked_at AS "revokedAt"
    FROM console_operator ORDER BY operator_id`;
}

/** Ends a token, within seconds also for who is logged in by it; false where it was ended before. Throws not-found. */
export async function revokeOperator(ledger: Ledger, operatorId: string): Promise<boolean> {
  const revoked = await ledger.sql`
    UPDATE console_operator SET revoked_at = now() WHERE operator_id = ${operatorId} AND revoked_at IS NULL`;
  if (revoked.count === 1) return true;
  const [row] = await ledger.sql`SELECT 1 FROM console_operator WHERE operator_id = ${operatorId}`;
  if (row === undefined) throw new NotFoundError("operator");
  return false;
}

/** Whose token this is; undefined where it is unknown or revoked. */
export async function operatorByToken(ledger: Ledger, token: string): Promise<ConsoleOperator | undefined> {
  const [row] = await ledger.sql<ConsoleOperator[]>`
    SELECT ${ledger.sql.unsafe(columns)} FROM console_operator WHERE token_hash = ${digestOf(token)} AND revoked_at IS NULL`;
  return row;
}

/** Who somebody logged in still is; undefined where the token has been revoked meanwhile. */
export async function operatorById(ledger: Ledger, operatorId: string): Promise<ConsoleOperator | undefined> {
  const [row] = await ledger.sql<ConsoleOperator[]>`
    SELECT ${ledger.sql.unsafe(columns)} FROM console_operator WHERE operator_id = ${operatorId} AND revoked_at IS NULL`;
  return row;
}
