import type { AnySql, Ledger, TransactionSql } from "./database.js";
import { effectOf, endStatuses, movesFrom, type SigningStatus } from "./signing-table.js";

/** One request at the provider. */
export interface SigningKey {
  tenantId: string;
  connectionId: string;
  providerRef: string;
}

/** What the provider last said of a reference; undefined where it has said nothing. */
export async function signingStatusOf(ledger: Ledger, key: SigningKey): Promise<SigningStatus | undefined> {
  const row = await readSigning(ledger.sql, key);
  return row?.status ?? undefined;
}

export interface SigningRow {
  operationId: string | null;
  status: SigningStatus | null;
}

/** The row of a request as it stands; undefined where nobody has spoken of it. */
export async function readSigning(sql: AnySql, key: SigningKey): Promise<SigningRow | undefined> {
  const [row] = await sql<SigningRow[]>`
    SELECT operation_id AS "operationId", status FROM contract_signing
    WHERE tenant_id = ${key.tenantId} AND connection_id = ${key.connectionId} AND provider_ref = ${key.providerRef}`;
  return row;
}

/**
 * Makes or touches the row and locks it. Applying and binding both begin here: the lock orders them, so that no event is
 * left waiting beside a bound reference.
 */
export async function lockSigning(sql: TransactionSql, key: SigningKey): Promise<SigningRow> {
  const [row] = await sql<SigningRow[]>`
    INSERT INTO contract_signing AS s (tenant_id, connection_id, provider_ref)
    VALUES (${key.tenantId}, ${key.connectionId}, ${key.providerRef})
    ON CONFLICT (tenant_id, connection_id, provider_ref) DO UPDATE SET updated_at = now()
    RETURNING operation_id AS "operationId", status`;
  return row ?? { operationId: null, status: null };
}

export type Moved = { kind: "applied" } | { kind: "no-op"; outcome: string } | { kind: "conflict"; outcome: string };

/**
 * Pushes the condition into the UPDATE: the row moves where the table lets it. Zero rows mean look: the same or an older
 * story, or another end than the one that stands.
 */
export async function moveSigning(sql: TransactionSql, key: SigningKey, status: SigningStatus): Promise<Moved> {
  const moved = await sql`
    UPDATE contract_signing SET status = ${status}, status_at = now(), updated_at = now(), asked_at = now()
    WHERE tenant_id = ${key.tenantId} AND connection_id = ${key.connectionId} AND provider_ref = ${key.providerRef}
      AND status = ANY(string_to_array(${movesFrom(status).join(",")}, ','))`;
  if (moved.count === 1) {
    if (isEnd(status)) await wakeThoseThatWait(sql, key);
    return { kind: "applied" };
  }
  const current = (await readSigning(sql, key))?.status ?? null;
  if (current === null) return { kind: "no-op", outcome: "already-unbound" };
  if (effectOf(current, status) === "conflict") {
    return { kind: "conflict", outcome: `${status.toLowerCase()}-after-${current.toLowerCase()}` };
  }
  return { kind: "no-op", outcome: `already-${current.toLowerCase()}` };
}

const ends: readonly SigningStatus[] = endStatuses;
const isEnd = (status: SigningStatus): boolean => ends.includes(status);

/** A FINALIZE that looks at its target from time to time need not wait for its next look. */
async function wakeThoseThatWait(sql: TransactionSql, key: SigningKey): Promise<void> {
  await sql`
    UPDATE signing_operation o SET due_at = now(), not_before = NULL FROM contract_signing s
    WHERE s.tenant_id = ${key.tenantId} AND s.connection_id = ${key.connectionId} AND s.provider_ref = ${key.providerRef}
      AND o.tenant_id = s.tenant_id AND o.target_operation_id = s.operation_id AND o.action = 'FINALIZE' AND o.state = 'UNKNOWN'
      AND o.target_ref = s.provider_ref`;
}
