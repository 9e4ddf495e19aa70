import { createHash, randomBytes, randomUUID } from "node:crypto";
import type { Ledger } from "./database.js";
import { PlanRefusedError, sqlState } from "./errors.js";
import { defaultThresholds, type ThresholdName, type TicketKind, ticketKinds } from "./tickets.js";

const uniqueViolation = "23505";

export interface NewTenant {
  tenantId: string;
  /** The team that owns each kind of ticket; `default` fills in for the kinds not named. */
  ticketOwners: Partial<Record<TicketKind, string>> & { default?: string };
  /** See {@link defaultThresholds}, which fill in what is not named. */
  thresholds?: Partial<Record<ThresholdName, number>>;
}

/** Creates a tenant with its data key. Throws `tenant-exists`, or `ticket-owner-missing` naming the kinds without one. */
export async function createTenant(ledger: Ledger, tenant: NewTenant): Promise<void> {
  const owners: Record<string, string> = {};
  const missing: string[] = [];
  for (const kind of ticketKinds) {
    const owner = tenant.ticketOwners[kind] ?? tenant.ticketOwners.default;
    if (owner === undefined || owner.trim() === "") missing.push(kind);
    else owners[kind] = owner;
  }
  if (missing.length > 0) {
    throw new PlanRefusedError("ticket-owner-missing", `no owner team for ticket kinds: ${missing.join(", ")}`, {
      missing,
    });
  }
  const { wrapped, keyId } = ledger.keyring.newWrappedKey(tenant.tenantId);
  const result = await ledger.sql`
    INSERT INTO tenant (tenant_id, ticket_owners, thresholds, data_key, key_id)
    VALUES (${tenant.tenantId}, ${ledger.sql.json(owners)}, ${ledger.sql.json({ ...defaultThresholds, ...tenant.thresholds })}, ${wrapped}, ${keyId})
    ON CONFLICT DO NOTHING`;
  if (result.count === 0) throw new PlanRefusedError("tenant-exists", `tenant ${tenant.tenantId} exists already`);
}

/** What a producer's key may do. */
export const producerScopes = ["operations:write", "operations:read", "documents:write"] as const;
/** Beside them: deciding reviews and tickets, and holding or ruling a whole tenant. Only where a key is given them by name. */
export const apiScopes = [...producerScopes, "reviews:write", "tenant:admin"] as const;
export type ApiScope = (typeof apiScopes)[number];

const digestOf = (key: string): Buffer => createHash("sha256").update(key).digest();

/** Makes a bearer key; its text is returned once and stored only as a digest. */
export async function createApiKey(
  ledger: Ledger,
  tenantId: string,
  name: string,
  scopes: readonly ApiScope[] = producerScopes,
): Promise<{ keyId: string; key: string }> {
  await ledger.tenantKey(tenantId);
  const keyId = randomUUID();
  const key = `csk_${randomBytes(32).toString("base64url")}`;
  await ledger.sql`
    INSERT INTO api_key (tenant_id, key_id, key_hash, name, scopes)
    VALUES (${tenantId}, ${keyId}, ${digestOf(key)}, ${name}, string_to_array(${scopes.join(",")}, ','))`;
  return { keyId, key };
}

export interface Caller {
  tenantId: string;
  keyId: string;
  scopes: string[];
}

/** Who a bearer key speaks for; undefined where it is unknown or revoked. */
export async function authenticate(ledger: Ledger, key: string): Promise<Caller | undefined> {
  const [row] = await ledger.sql<Caller[]>`
    SELECT tenant_id AS "tenantId", key_id AS "keyId", to_jsonb(scopes) AS scopes FROM api_key
    WHERE key_hash = ${digestOf(key)} AND revoked_at IS NULL`;
  return row;
}

/** Runs an insert whose unique violation means that the thing exists. */
export async function refuseDuplicate<Result>(
  code: string,
  message: string,
  insert: () => Promise<Result>,
): Promise<Result> {
  try {
    return await insert();
  } catch (error) {
    if (sqlState(error) === uniqueViolation) throw new PlanRefusedError(code, message);
    throw error;
  }
}

/** Who owns a tenant's tickets, and its thresholds; undefined where there is no such tenant. */
export async function getTenant(
  ledger: Ledger,
  tenantId: string,
): Promise<{ tenantId: string; ticketOwners: Record<string, string>; thresholds: Record<string, number> } | undefined> {
  const [row] = await ledger.sql<
    { tenantId: string; ticketOwners: Record<string, string>; thresholds: Record<string, number> }[]
  >`SELECT tenant_id AS "tenantId", ticket_owners AS "ticketOwners", thresholds FROM tenant WHERE tenant_id = ${tenantId}`;
  return row;
}
