import { type Connection, DecryptionError, type Ledger, listConnections, openConnection } from "@countersign/ledger";
import { providerByName } from "@countersign/provider";
import { notAsked } from "../commands/connection-test.js";
import { harmlessRead, type Reading, remedyFor } from "../harmless-read.js";
import { type Finding, finding } from "./finding.js";

/** Reads of different connections that run at once. */
const atOnce = 4;

/**
 * Asks the provider of every connection of a tenant for a request that nobody has made. One that is paused is not asked:
 * the provider may have named the time.
 */
export async function lookAtConnections(ledger: Ledger, tenantId: string, offline: boolean): Promise<Finding[]> {
  const connections = await listConnections(ledger, tenantId);
  const findings: Finding[] = [];
  for (let start = 0; start < connections.length; start += atOnce) {
    const batch = connections.slice(start, start + atOnce);
    findings.push(...(await Promise.all(batch.map((each) => lookAtConnection(ledger, each, offline)))));
  }
  return findings;
}

async function lookAtConnection(ledger: Ledger, connection: Connection, offline: boolean): Promise<Finding> {
  const { tenantId, connectionId, pausedForMs, pauseReason } = connection;
  const subject = `${tenantId}/${connectionId}`;
  const where = `--tenant ${tenantId} --connection ${connectionId}`;
  const provider = providerByName(connection.provider);
  if (provider === undefined) {
    return finding("fail", "provider", `this build has no adapter ${connection.provider}`, {
      subject,
      remedy: "run the build that made the connection",
    });
  }
  if (pausedForMs > 0) {
    const remedy = `when its cause is gone: countersign connection test ${where}, then countersign connection resume ${where} --who <id>`;
    return finding("warn", "provider", `paused (${pauseReason ?? "no reason"}), so not asked`, { subject, remedy });
  }
  if (offline) return finding("skip", "provider", "not asked (--offline)", { subject });
  try {
    const opened = await openConnection(ledger, tenantId, connectionId);
    return readingFinding(opened, subject, await harmlessRead(ledger, provider, opened));
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    const remedy = `store the API key anew: countersign connection set-key ${where} --api-key-stdin`;
    return finding("fail", "provider", "its stored API key can't be opened", { subject, remedy });
  }
}

function readingFinding(connection: Connection, subject: string, reading: Reading): Finding {
  if (reading.kind === "not-asked") {
    return finding(reading.cause === "no-lookup" ? "skip" : "warn", "provider", notAsked[reading.cause], { subject });
  }
  if (reading.kind === "failed") {
    const what = `the read failed (${reading.cause}, ${reading.ms} ms)`;
    return finding("fail", "provider", what, { subject, remedy: remedyFor(connection, reading.cause) });
  }
  const what = `it answers and takes the key (${reading.ms} ms)`;
  const { tenantId, connectionId } = connection;
  if (reading.strangers > 0) {
    return finding("warn", "provider", `${what}, but shows requests that were not asked for`, {
      subject,
      remedy: `its lookup filters nothing: countersign connection verify --tenant ${tenantId} --connection ${connectionId} --sandbox-send`,
    });
  }
  if (connection.circuitOpen) {
    return finding("warn", "provider", `${what}, but counts as down`, {
      subject,
      remedy: "the next probe opens it again",
    });
  }
  return finding("ok", "provider", what, { subject });
}
