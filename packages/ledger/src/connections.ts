import type { AnySql, Ledger } from "./database.js";
import { NotFoundError } from "./errors.js";
import { rampUp } from "./ramp-up.js";
import { refuseDuplicate } from "./tenants.js";
import { openTicket } from "./tickets.js";

export interface Connection {
  tenantId: string;
  connectionId: string;
  provider: string;
  baseUrl: string;
  isDefault: boolean;
  /** May lookups by our metadata be used at all? */
  metadataLookup: boolean;
  /** Set once `connection verify` (or a named person) has shown what an empty answer means here. */
  lookupVerifiedAt: string | null;
  /** ms until the pause ends; 0 when open. Capped at five minutes, since a pause may end early. */
  pausedForMs: number;
  pauseReason: string | null;
  /** Calls per second, submissions and lookups alike; null: no limit of ours. */
  ratePerSecond: number | null;
  /** Calls in a row that found the provider down. */
  circuitFailures: number;
  /** Nobody but a probe calls. */
  circuitOpen: boolean;
  /** What `connection verify` recorded. */
  lookupVerification: { lagMs?: number; list?: boolean } | null;
}

export interface NewConnection {
  tenantId: string;
  connectionId: string;
  provider: string;
  baseUrl: string;
  credential: string;
  isDefault?: boolean;
  metadataLookup?: boolean;
  ratePerSecond?: number;
}

const associated = (tenantId: string, table: string, id: string): string => `${tenantId}/${table}/${id}`;

/** Stores a connection, its credential encrypted. Throws `connection-exists`, or not-found for the tenant. */
export async function createConnection(ledger: Ledger, connection: NewConnection): Promise<void> {
  const { tenantId, connectionId } = connection;
  const key = await ledger.tenantKey(tenantId);
  const sealed = key.seal(
    Buffer.from(connection.credential),
    associated(tenantId, "provider_connection", connectionId),
  );
  await refuseDuplicate(
    "connection-exists",
    `connection ${connectionId} exists already for tenant ${tenantId}`,
    () => ledger.sql`
      INSERT INTO provider_connection (tenant_id, connection_id, provider, base_url, credential, key_id, is_default, metadata_lookup, rate_per_second)
      VALUES (${tenantId}, ${connectionId}, ${connection.provider}, ${connection.baseUrl}, ${sealed}, ${key.keyId},
        ${connection.isDefault ?? false}, ${connection.metadataLookup ?? true}, ${connection.ratePerSecond ?? null})`,
  );
}

/** Replaces a connection's credential (it expired, it was rotated). Calls use it within seconds. Throws not-found. */
export async function setCredential(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  credential: string,
): Promise<void> {
  const key = await ledger.tenantKey(tenantId);
  const sealed = key.seal(Buffer.from(credential), associated(tenantId, "provider_connection", connectionId));
  const result = await ledger.sql`
    UPDATE provider_connection SET credential = ${sealed}, key_id = ${key.keyId}
    WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
  if (result.count === 0) throw new NotFoundError("connection");
}

const columns = (sql: AnySql) => sql`
  tenant_id AS "tenantId", connection_id AS "connectionId", provider, base_url AS "baseUrl", is_default AS "isDefault",
  metadata_lookup AS "metadataLookup", rate_per_second::float8 AS "ratePerSecond", circuit_failures AS "circuitFailures",
  circuit_opened_at IS NOT NULL AS "circuitOpen", lookup_verification AS "lookupVerification", lookup_verified_at AS "lookupVerifiedAt", pause_reason AS "pauseReason",
  COALESCE(GREATEST(0, EXTRACT(EPOCH FROM (LEAST(COALESCE(paused_until, now()), now() + interval '5 minutes') - now())) * 1000), 0)::float8 AS "pausedForMs"`;

/** The tenant's connections. */
export async function listConnections(ledger: Ledger, tenantId: string): Promise<Connection[]> {
  return await ledger.sql<Connection[]>`
    SELECT ${columns(ledger.sql)} FROM provider_connection WHERE tenant_id = ${tenantId} ORDER BY connection_id`;
}

/** A connection with its credential in the clear, for the moment of a call. Throws not-found. */
export async function openConnection(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
): Promise<Connection & { credential: string }> {
  const key = await ledger.tenantKey(tenantId);
  const [row] = await ledger.sql<(Connection & { sealed: Buffer })[]>`
    SELECT ${columns(ledger.sql)}, credential AS sealed FROM provider_connection
    WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
  if (row === undefined) throw new NotFoundError("connection");
  const { sealed, ...connection } = row;
  const credential = key.open(sealed, associated(tenantId, "provider_connection", connectionId)).toString();
  return { ...connection, credential };
}

/** Longer than this, ms, a pause is somebody's business: nobody ever calls earlier than the provider allows. */
const ownedPauseMs = 15 * 60_000;

/**
 * Pauses a connection so that a thousand operations don't each learn the same thing. `forMs` undefined: until somebody
 * resumes it. That, or a long one, opens an owned ticket (an expired credential must not burn a thousand intents). Never
 * shortens a pause.
 */
export async function pauseConnection(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  reason: string,
  forMs?: number,
): Promise<void> {
  const until = forMs === undefined ? null : forMs;
  const owned = forMs === undefined || forMs > ownedPauseMs;
  await ledger.sql`
    UPDATE provider_connection SET
      pause_reason = CASE WHEN paused_until = 'infinity' THEN pause_reason ELSE ${reason} END,
      paused_until = GREATEST(paused_until, CASE WHEN ${until}::float8 IS NULL THEN 'infinity'::timestamptz
        ELSE now() + make_interval(secs => ${until}::float8 / 1000) END)
    WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
  if (owned) {
    await openTicket(ledger.sql, {
      tenantId,
      kind: "connection-paused",
      subjectKind: "connection",
      subjectId: connectionId,
      reason,
    });
  }
}

/** Ends a pause, closes its ticket in the name of `by`, and makes what waited for it due gradually. Throws not-found. */
export async function resumeConnection(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  by = "operator",
): Promise<void> {
  await ledger.sql.begin(async (sql) => {
    const result = await sql`
      UPDATE provider_connection SET paused_until = NULL, pause_reason = NULL
      WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
    if (result.count === 0) throw new NotFoundError("connection");
    await sql`
      UPDATE ticket SET resolved_at = now(), resolution = 'resumed', resolved_by = ${by}
      WHERE tenant_id = ${tenantId} AND kind = 'connection-paused' AND subject_id = ${connectionId} AND resolved_at IS NULL`;
    await rampUp(sql, { tenantId, connectionId });
  });
}

/** What `connection verify` found: from then on an empty lookup may count towards absence. */
export async function recordLookupVerification(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  result: { verified: boolean; by: string; lagMs?: number; list?: boolean; note: string },
): Promise<void> {
  await ledger.sql`
    UPDATE provider_connection SET
      lookup_verified_at = CASE WHEN ${result.verified} THEN now() END,
      lookup_verification = ${ledger.sql.json(result)}::jsonb || jsonb_build_object('at', now())
    WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
}

/** Sets how many calls per second a connection may make, all workers together; null for no limit of ours. Throws not-found. */
export async function setRate(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  perSecond: number | null,
): Promise<void> {
  const result = await ledger.sql`
    UPDATE provider_connection SET rate_per_second = ${perSecond}
    WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
  if (result.count === 0) throw new NotFoundError("connection");
}

/** Switches lookups by metadata on or off for a connection. */
export async function setMetadataLookup(
  ledger: Ledger,
  tenantId: string,
  connectionId: string,
  on: boolean,
): Promise<void> {
  await ledger.sql`
    UPDATE provider_connection SET metadata_lookup = ${on}
    WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
}
