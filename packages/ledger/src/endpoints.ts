import { randomBytes, randomUUID } from "node:crypto";
import type { Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";

/** Which bytes of a compressed delivery were signed: the unpacked `content`, or the packed ones as they came by `wire`. */
export type GzipRule = "content" | "wire";

export interface Endpoint {
  endpointId: string;
  tenantId: string;
  connectionId: string;
  provider: string;
  scheme: string;
  /** null: compressed deliveries are refused. */
  gzip: GzipRule | null;
  secrets: { secretId: string; secret: string }[];
}

const associated = (tenantId: string, secretId: string): string => `${tenantId}/webhook_secret/${secretId}`;

async function sealSecret(ledger: Ledger, tenantId: string, secret: string) {
  const key = await ledger.tenantKey(tenantId);
  const secretId = randomUUID();
  return { secretId, keyId: key.keyId, sealed: key.seal(Buffer.from(secret), associated(tenantId, secretId)) };
}

/** Makes a webhook endpoint with its first secret; the id is unguessable and stands in the URL path. Throws not-found. */
export async function createWebhookEndpoint(
  ledger: Ledger,
  endpoint: { tenantId: string; connectionId: string; scheme: string; secret: string; gzip?: GzipRule },
): Promise<{ endpointId: string; path: string; secretId: string }> {
  const { tenantId, connectionId } = endpoint;
  const endpointId = `we_${randomBytes(24).toString("base64url")}`;
  const { secretId, keyId, sealed } = await sealSecret(ledger, tenantId, endpoint.secret);
  await ledger.sql.begin(async (sql) => {
    const made = await sql`
      INSERT INTO webhook_endpoint (endpoint_id, tenant_id, connection_id, scheme, gzip)
      SELECT ${endpointId}, tenant_id, connection_id, ${endpoint.scheme}, ${endpoint.gzip ?? null} FROM provider_connection
      WHERE tenant_id = ${tenantId} AND connection_id = ${connectionId}`;
    if (made.count === 0) throw new NotFoundError("connection");
    await sql`
      INSERT INTO webhook_secret (endpoint_id, secret_id, secret, key_id) VALUES (${endpointId}, ${secretId}, ${sealed}, ${keyId})`;
  });
  return { endpointId, path: `/webhooks/${endpointId}`, secretId };
}

/** The endpoint with every secret valid now; undefined where there is none, or it is disabled. */
export async function openEndpoint(ledger: Ledger, endpointId: string): Promise<Endpoint | undefined> {
  const rows = await ledger.sql<
    (Omit<Endpoint, "secrets"> & { secretId: string | null; sealed: Buffer | null })[]
  >`SELECT e.endpoint_id AS "endpointId", e.tenant_id AS "tenantId", e.connection_id AS "connectionId", c.provider, e.scheme, e.gzip,
      s.secret_id AS "secretId", s.secret AS sealed
    FROM webhook_endpoint e
    JOIN provider_connection c ON c.tenant_id = e.tenant_id AND c.connection_id = e.connection_id
    LEFT JOIN webhook_secret s ON s.endpoint_id = e.endpoint_id AND (s.retired_at IS NULL OR s.retired_at > now())
    WHERE e.endpoint_id = ${endpointId} AND e.disabled_at IS NULL
    ORDER BY s.created_at DESC`;
  const [first] = rows;
  if (first === undefined) return undefined;
  const key = await ledger.tenantKey(first.tenantId);
  const { sealed: _sealed, secretId: _secretId, ...endpoint } = first;
  return {
    ...endpoint,
    secrets: rows.flatMap(({ secretId, sealed, tenantId }) =>
      secretId === null || sealed === null
        ? []
        : [{ secretId, secret: key.open(sealed, associated(tenantId, secretId)).toString() }],
    ),
  };
}

export interface EndpointSecret {
  secretId: string;
  createdAt: string;
  /** From then on it verifies nothing; may lie ahead. */
  retiredAt: string | null;
  active: boolean;
  /** To half a minute. */
  lastVerifiedAt: string | null;
}

export interface EndpointView {
  endpointId: string;
  connectionId: string;
  scheme: string;
  gzip: GzipRule | null;
  createdAt: string;
  disabledAt: string | null;
  lastVerifiedAt: string | null;
  secrets: EndpointSecret[];
}

/** A tenant's endpoints with what is known of each secret, never the secrets themselves. */
export async function listEndpoints(ledger: Ledger, tenantId: string): Promise<EndpointView[]> {
  return await ledger.sql<EndpointView[]>`
    SELECT e.endpoint_id AS "endpointId", e.connection_id AS "connectionId", e.scheme, e.gzip, e.created_at AS "createdAt",
      e.disabled_at AS "disabledAt", e.last_verified_at AS "lastVerifiedAt",
      (SELECT COALESCE(jsonb_agg(jsonb_build_object('secretId', s.secret_id, 'createdAt', s.created_at, 'retiredAt', s.retired_at,
          'active', s.retired_at IS NULL OR s.retired_at > now(), 'lastVerifiedAt', s.last_verified_at) ORDER BY s.created_at), '[]')
        FROM webhook_secret s WHERE s.endpoint_id = e.endpoint_id) AS secrets
    FROM webhook_endpoint e WHERE e.tenant_id = ${tenantId} ORDER BY e.created_at`;
}

/** Secrets at once, so that a delivery is never compared with a thousand. */
export const maxActiveSecrets = 10;

/**
 * Adds a secret. The older ones go on verifying for `overlapMs` (undefined: until they are retired by name). Throws
 * not-found, and `too-many-secrets`.
 */
export async function rotateSecret(
  ledger: Ledger,
  rotation: { tenantId: string; endpointId: string; secret: string; overlapMs?: number },
): Promise<{ secretId: string; retiring: string[] }> {
  const { tenantId, endpointId, overlapMs } = rotation;
  const { secretId, keyId, sealed } = await sealSecret(ledger, tenantId, rotation.secret);
  return await ledger.sql.begin(async (sql) => {
    const [endpoint] = await sql`
      SELECT 1 FROM webhook_endpoint WHERE endpoint_id = ${endpointId} AND tenant_id = ${tenantId} FOR UPDATE`;
    if (endpoint === undefined) throw new NotFoundError("webhook endpoint");
    const [active] = await sql<{ count: number }[]>`
      SELECT count(*)::int AS count FROM webhook_secret
      WHERE endpoint_id = ${endpointId} AND (retired_at IS NULL OR retired_at > now())`;
    if ((active?.count ?? 0) >= maxActiveSecrets) {
      throw new PlanRefusedError(
        "too-many-secrets",
        `an endpoint has at most ${maxActiveSecrets} secrets; retire one first`,
      );
    }
    const retiring = await sql<{ secretId: string }[]>`
      UPDATE webhook_secret SET retired_at = LEAST(retired_at, now() + make_interval(secs => ${overlapMs ?? 0}::float8 / 1000))
      WHERE endpoint_id = ${endpointId} AND (retired_at IS NULL OR retired_at > now()) AND ${overlapMs !== undefined}
      RETURNING secret_id AS "secretId"`;
    await sql`
      INSERT INTO webhook_secret (endpoint_id, secret_id, secret, key_id) VALUES (${endpointId}, ${secretId}, ${sealed}, ${keyId})`;
    return { secretId, retiring: retiring.map((each) => each.secretId) };
  });
}

/**
 * Retires a secret at once. Throws not-found, and `last-secret` where nothing would verify any more (disable the endpoint
 * instead).
 */
export async function retireSecret(
  ledger: Ledger,
  retirement: { tenantId: string; endpointId: string; secretId: string },
): Promise<void> {
  const { tenantId, endpointId, secretId } = retirement;
  await ledger.sql.begin(async (sql) => {
    const secrets = await sql<{ secretId: string; active: boolean }[]>`
      SELECT s.secret_id AS "secretId", s.retired_at IS NULL OR s.retired_at > now() AS active
      FROM webhook_endpoint e JOIN webhook_secret s USING (endpoint_id)
      WHERE e.endpoint_id = ${endpointId} AND e.tenant_id = ${tenantId} FOR UPDATE OF e`;
    if (!secrets.some((each) => each.secretId === secretId)) throw new NotFoundError("webhook secret");
    if (!secrets.some((each) => each.active && each.secretId !== secretId)) {
      throw new PlanRefusedError(
        "last-secret",
        "no other secret would verify a delivery; add one, or disable the endpoint",
      );
    }
    await sql`
      UPDATE webhook_secret SET retired_at = LEAST(retired_at, now()) WHERE endpoint_id = ${endpointId} AND secret_id = ${secretId}`;
  });
}

/** Switches an endpoint off (its deliveries are answered 404) or on again. Throws not-found. */
export async function setEndpointDisabled(
  ledger: Ledger,
  endpoint: { tenantId: string; endpointId: string; disabled: boolean },
): Promise<void> {
  const result = await ledger.sql`
    UPDATE webhook_endpoint SET disabled_at = CASE WHEN ${endpoint.disabled} THEN COALESCE(disabled_at, now()) END, suspect_since = NULL
    WHERE endpoint_id = ${endpoint.endpointId} AND tenant_id = ${endpoint.tenantId}`;
  if (result.count === 0) throw new NotFoundError("webhook endpoint");
}

/** Every secret of an endpoint, the retired ones apart, to tell what is wrong with a delivery. Throws not-found. */
export async function openAllSecrets(
  ledger: Ledger,
  tenantId: string,
  endpointId: string,
): Promise<{
  endpoint: EndpointView;
  secrets: { secretId: string; secret: string; active: boolean }[];
  others: { label: string; secret: string }[];
}> {
  const endpoint = (await listEndpoints(ledger, tenantId)).find((each) => each.endpointId === endpointId);
  if (endpoint === undefined) throw new NotFoundError("webhook endpoint");
  const rows = await ledger.sql<
    { endpointId: string; secretId: string; sealed: Buffer; active: boolean }[]
  >`SELECT s.endpoint_id AS "endpointId", s.secret_id AS "secretId", s.secret AS sealed, s.retired_at IS NULL OR s.retired_at > now() AS active
    FROM webhook_endpoint e JOIN webhook_secret s USING (endpoint_id) WHERE e.tenant_id = ${tenantId} ORDER BY s.created_at DESC`;
  const key = await ledger.tenantKey(tenantId);
  const opened = rows.map(({ sealed, ...row }) => ({
    ...row,
    secret: key.open(sealed, associated(tenantId, row.secretId)).toString(),
  }));
  return {
    endpoint,
    secrets: opened.filter((each) => each.endpointId === endpointId),
    others: opened
      .filter((each) => each.endpointId !== endpointId)
      .map((each) => ({ label: each.endpointId, secret: each.secret })),
  };
}
