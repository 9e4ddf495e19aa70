import { randomUUID } from "node:crypto";
import type { Ledger } from "./database.js";
import { NotFoundError, PlanRefusedError } from "./errors.js";
import { checkReason } from "./reason.js";
import { refuseDuplicate } from "./tenants.js";

/** What a tenant may decide beforehand, each for which actions. */
export const policies = {
  /** An operation that nobody can prove counts as done; `explain` says "taken as done, not proven". */
  "treat-unprovable-as-done": ["RESEND", "VOID"],
  /** Of several requests the first is kept and every other gets its VOID. */
  "accept-duplicate-and-void": ["SEND"],
  /** A keyed replay is made although the provider does not document that an error leaves nothing behind. */
  "accept-replay-risk": ["SEND"],
} as const;
export type PolicyName = keyof typeof policies;

export const isPolicyName = (name: string): name is PolicyName => name in policies;

export interface Policy {
  policyId: string;
  policy: PolicyName;
  action: string;
  connectionId: string | null;
  writtenBy: string;
  reason: string;
  createdAt: string;
}

/** Puts a policy in force. Throws `policy-unsuitable` for an action it isn't for, `policy-in-force`, not-found for tenant or connection. */
export async function writePolicy(
  ledger: Ledger,
  policy: { tenantId: string; policy: PolicyName; action: string; connectionId?: string; by: string; reason: string },
): Promise<string> {
  checkReason(policy.by, policy.reason);
  const suitable: readonly string[] = policies[policy.policy];
  if (!suitable.includes(policy.action)) {
    throw new PlanRefusedError(
      "policy-unsuitable",
      `${policy.policy} is for ${suitable.join(", ")}, not for ${policy.action}`,
    );
  }
  const policyId = randomUUID();
  const result = await refuseDuplicate(
    "policy-in-force",
    "this very policy is in force already",
    () => ledger.sql`
    INSERT INTO tenant_policy (tenant_id, policy_id, policy, action, connection_id, written_by, reason)
    SELECT t.tenant_id, ${policyId}::uuid, ${policy.policy}, ${policy.action}, ${policy.connectionId ?? null}, ${policy.by}, ${policy.reason}
    FROM tenant t WHERE t.tenant_id = ${policy.tenantId} AND (${policy.connectionId ?? null}::text IS NULL OR EXISTS (
      SELECT 1 FROM provider_connection c WHERE c.tenant_id = t.tenant_id AND c.connection_id = ${policy.connectionId ?? null}))`,
  );
  if (result.count === 0) throw new NotFoundError(policy.connectionId === undefined ? "tenant" : "connection");
  return policyId;
}

/** Takes a policy out of force; what it decided stays. False where it is not in force. */
export async function revokePolicy(ledger: Ledger, tenantId: string, policyId: string, by: string): Promise<boolean> {
  const result = await ledger.sql`
    UPDATE tenant_policy SET revoked_at = now(), revoked_by = ${by}
    WHERE tenant_id = ${tenantId} AND policy_id = ${policyId} AND revoked_at IS NULL`;
  return result.count === 1;
}

/** Policies in force. */
export async function listPolicies(ledger: Ledger, tenantId: string): Promise<Policy[]> {
  return await ledger.sql<Policy[]>`
    SELECT policy_id AS "policyId", policy, action, connection_id AS "connectionId", written_by AS "writtenBy", reason, created_at AS "createdAt"
    FROM tenant_policy WHERE tenant_id = ${tenantId} AND revoked_at IS NULL ORDER BY created_at`;
}

/** The policy of that name in force for an action on a connection; undefined where there is none. */
export async function policyInForce(
  ledger: Ledger,
  scope: { tenantId: string; connectionId: string; action: string; policy: PolicyName },
): Promise<Policy | undefined> {
  const [row] = await ledger.sql<Policy[]>`
    SELECT policy_id AS "policyId", policy, action, connection_id AS "connectionId", written_by AS "writtenBy", reason, created_at AS "createdAt"
    FROM tenant_policy WHERE tenant_id = ${scope.tenantId} AND revoked_at IS NULL AND policy = ${scope.policy} AND action = ${scope.action}
      AND (connection_id IS NULL OR connection_id = ${scope.connectionId})
    ORDER BY connection_id NULLS LAST, created_at LIMIT 1`;
  return row;
}
