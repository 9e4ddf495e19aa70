import { type Ledger, listTenantIds, NotFoundError } from "@countersign/ledger";
import { asCliError, exitCodes } from "../errors.js";
import type { CliIo } from "../io.js";
import { lookAtConnections } from "./connections.js";
import { lookAtDatabase, lookAtMigrations } from "./database.js";
import { type Finding, finding } from "./finding.js";
import { lookAtFleet } from "./fleet.js";
import { lookAtQueues } from "./queues.js";
import { lookAtEndpoints, lookAtKey, lookAtOwners } from "./tenant.js";

export interface Examination {
  readonly io: CliIo;
  readonly ledger: Ledger;
  readonly databaseUrl: string;
  readonly redisUrl: string | undefined;
  /** Only this one; undefined: every tenant. */
  readonly tenantId: string | undefined;
  /** Ask no provider. */
  readonly offline: boolean;
}

export interface Examined {
  readonly findings: readonly Finding[];
  /** Whether there was a conversation with the database at all. */
  readonly reachable: boolean;
}

/**
 * Looks at everything that must work, and changes nothing. A look that fails is a finding, and the others go on.
 * @throws NotFoundError for a tenant that does not exist
 */
export async function examine(examination: Examination): Promise<Examined> {
  const { io, ledger, databaseUrl, redisUrl } = examination;
  const findings: Finding[] = [];
  const look = async (check: string, looking: () => Promise<Finding | readonly Finding[]>, subject?: string) => {
    const found = [await guarded(check, looking, subject)].flat();
    findings.push(...found);
    return found.every(({ status }) => status !== "fail");
  };
  let reachable = true;
  const conversation = await look("database", async () => {
    try {
      return await lookAtDatabase(ledger);
    } catch (error) {
      reachable = asCliError(error).exitCode !== exitCodes.unreachable;
      throw error;
    }
  });
  await look("queues", () => lookAtQueues(io, redisUrl));
  if (!reachable) return { findings, reachable };
  const migrated = await look("migrations", () => lookAtMigrations(databaseUrl));
  if (!migrated || !conversation) return { findings, reachable };
  await lookAtTenants(examination, look);
  return { findings, reachable };
}

type Look = (check: string, looking: () => Promise<Finding | readonly Finding[]>, subject?: string) => Promise<boolean>;

async function lookAtTenants({ ledger, tenantId, offline }: Examination, look: Look): Promise<void> {
  const all = await listTenantIds(ledger);
  if (tenantId !== undefined && !all.includes(tenantId)) throw new NotFoundError("tenant");
  const tenants = tenantId === undefined ? all : [tenantId];
  let endpoints = false;
  for (const tenant of tenants) {
    await look("ticket-owners", () => lookAtOwners(ledger, tenant), tenant);
    await look(
      "webhook",
      async () => {
        const found = await lookAtEndpoints(ledger, tenant);
        endpoints ||= found.length > 0;
        return found;
      },
      tenant,
    );
    // Without the key nothing of the tenant can be opened, and every further failure would only repeat it.
    const opens = await look("encryption-key", () => lookAtKey(ledger, tenant), tenant);
    if (opens) await look("provider", () => lookAtConnections(ledger, tenant, offline), tenant);
  }
  if (tenants.length === 0) {
    await look("tenants", async () =>
      finding("warn", "tenants", "there is none", { remedy: "countersign tenant create" }),
    );
  }
  await look("worker", () => lookAtFleet(ledger, endpoints));
}

async function guarded(
  check: string,
  looking: () => Promise<Finding | readonly Finding[]>,
  subject: string | undefined,
): Promise<Finding | readonly Finding[]> {
  try {
    return await looking();
  } catch (error) {
    const { safeMessage } = asCliError(error);
    return finding("fail", check, safeMessage, subject === undefined ? {} : { subject });
  }
}
