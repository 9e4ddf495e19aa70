import {
  DecryptionError,
  type EndpointView,
  getTenant,
  type Ledger,
  listEndpoints,
  listTickets,
  ticketKinds,
  toIso,
} from "@countersign/ledger";
import { seconds } from "../age.js";
import { type Finding, finding } from "./finding.js";

/** Whether the encryption key opens a tenant's data key. */
export async function lookAtKey(ledger: Ledger, tenantId: string): Promise<Finding> {
  try {
    await ledger.tenantKey(tenantId);
    return finding("ok", "encryption-key", "it opens the tenant's data key", { subject: tenantId });
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    return finding("fail", "encryption-key", "it does not open the tenant's data key", {
      subject: tenantId,
      remedy: "set COUNTERSIGN_ENCRYPTION_KEY to the key under which the tenant was created",
    });
  }
}

/** Whether somebody owns every kind of ticket of a tenant. */
export async function lookAtOwners(ledger: Ledger, tenantId: string): Promise<Finding> {
  const owners = (await getTenant(ledger, tenantId))?.ticketOwners ?? {};
  const missing = ticketKinds.filter((kind) => (owners[kind] ?? "").trim() === "");
  const [first] = missing;
  if (first === undefined) return finding("ok", "ticket-owners", "every kind has one", { subject: tenantId });
  return finding("fail", "ticket-owners", `nobody owns ${missing.join(", ")}`, {
    subject: tenantId,
    remedy: `countersign tenants set-owner ${tenantId} --owner-for ${first}=<team>`,
  });
}

/** Whether deliveries come in at a tenant's webhook endpoints. */
export async function lookAtEndpoints(ledger: Ledger, tenantId: string): Promise<Finding[]> {
  const endpoints = await listEndpoints(ledger, tenantId);
  if (endpoints.length === 0) return [];
  const silent = await listTickets(ledger, tenantId, 1_000, { kind: "endpoint-silent" });
  return endpoints.map((endpoint) =>
    endpointFinding(
      tenantId,
      endpoint,
      silent.find(({ subjectId }) => subjectId === endpoint.endpointId),
    ),
  );
}

function endpointFinding(tenantId: string, endpoint: EndpointView, ticket: { reason: string } | undefined): Finding {
  const subject = `${tenantId}/${endpoint.connectionId}/${shortened(endpoint.endpointId)}`;
  const { lastVerifiedAt, disabledAt } = endpoint;
  // By the clock of this host, whose difference from the database's is a finding of its own.
  const last =
    lastVerifiedAt === null
      ? "no delivery has ever verified"
      : `the last verified delivery is ${seconds(Math.max(0, Date.now() - Date.parse(toIso(lastVerifiedAt))) / 1_000)} old`;
  const list = `countersign webhook-endpoint list --tenant ${tenantId}`;
  if (disabledAt !== null) {
    return finding("warn", "webhook", `disabled; ${last}`, { subject, remedy: "countersign webhook-endpoint enable" });
  }
  if (ticket !== undefined) {
    const remedy = `see its ticket: countersign tickets list --tenant ${tenantId} --kind endpoint-silent`;
    return finding("fail", "webhook", `${ticket.reason}; ${last}`, { subject, remedy });
  }
  if (lastVerifiedAt === null) {
    const remedy = `check the URL and secret at the provider (${list}; countersign webhook verify tells what is wrong with a delivery)`;
    return finding("warn", "webhook", last, { subject, remedy });
  }
  return finding("ok", "webhook", last, { subject });
}

/** The whole id stands in the URL, which is as good as a secret. */
const shortened = (endpointId: string): string => `${endpointId.slice(0, 9)}…`;
