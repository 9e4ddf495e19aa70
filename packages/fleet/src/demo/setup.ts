import { randomBytes } from "node:crypto";
import { verifyConnection } from "@countersign/cli";
import { createApiKey, createConnection, createTenant, createWebhookEndpoint, type Ledger } from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import { FleetError } from "../errors.js";
import type { SimulatorProcess } from "../simulator-process.js";

/** The two companies of the demo; the provider knows each as a workspace of its own. */
const tenantIds = ["harbour-lane", "northfield"] as const;
const connectionId = "wesign";
const verifyLagMs = 10_000;

export interface TenantAccess {
  readonly tenantId: string;
  readonly apiKey: string;
}

/**
 * Makes two tenants as an administrator would: owner teams, a connection with its own workspace key, a webhook endpoint
 * registered at the provider, an API key.
 */
export async function setUpTenants(
  ledger: Ledger,
  simulator: SimulatorProcess,
  ingressUrl: string,
): Promise<TenantAccess[]> {
  const tenants: TenantAccess[] = [];
  for (const tenantId of tenantIds) {
    const credential = `wsk_${randomBytes(18).toString("base64url")}`;
    const secret = `whsec_${randomBytes(24).toString("base64url")}`;
    await createTenant(ledger, { tenantId, ticketOwners: { default: "contracts-team" } });
    await createConnection(ledger, {
      tenantId,
      connectionId,
      provider: "wesign",
      baseUrl: simulator.url,
      credential,
      isDefault: true,
    });
    const { path } = await createWebhookEndpoint(ledger, { tenantId, connectionId, scheme: "elchi", secret });
    await simulator.configure({
      workspaces: [{ name: tenantId, keys: [credential], hooks: [{ url: `${ingressUrl}${path}`, secret }] }],
    });
    const { key } = await createApiKey(ledger, tenantId, "demo producer");
    tenants.push({ tenantId, apiKey: key });
  }
  return tenants;
}

/** `countersign connection verify` for each: from then on an empty lookup may count towards absence. @throws FleetError */
export async function verifyConnections(ledger: Ledger, tenants: readonly TenantAccess[]): Promise<number> {
  const lags = await Promise.all(
    tenants.map(async ({ tenantId }) => {
      const result = await verifyConnection({
        ledger,
        providerByName,
        tenantId,
        connectionId,
        lagTimeoutMs: verifyLagMs,
        by: "demo",
      });
      if (!result.verified || result.leftBehind) {
        throw new FleetError(`the connection of ${tenantId} could not be verified: ${result.note}`);
      }
      return result.lagMs ?? 0;
    }),
  );
  return Math.max(...lags);
}
