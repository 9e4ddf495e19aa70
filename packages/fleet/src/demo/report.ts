import { explain, getHistory, getOperation, type Ledger } from "@countersign/ledger";
import pc from "picocolors";
import type { ProviderAudit } from "../simulator-process.js";
import { type DemoAudit, type Finding, isClean } from "./audit.js";
import type { OperationRow } from "./operations.js";

const row = (name: string, value: string | number, remark = ""): string =>
  `  ${name.padEnd(28)}${String(value).padStart(7)}${remark === "" ? "" : `   ${pc.dim(remark)}`}`;

/** The audit in words and numbers. */
export function auditText(audit: DemoAudit, operations: readonly OperationRow[], provider: ProviderAudit): string {
  const voids = operations.filter(({ action, state }) => action === "VOID" && state === "CONFIRMED").length;
  const retired = operations.filter(
    ({ action, state, attemptNo }) => action === "SEND" && state === "SUPERSEDED" && attemptNo === 0,
  ).length;
  const { settledBy } = audit;
  const verdict = (name: string, count: number): string => (count === 0 ? pc.green : pc.red)(row(name, count));
  const applied = Object.entries(provider.faults.applied)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([kind, count]) => `${kind} ${count}`)
    .join(", ");
  return [
    "",
    pc.bold("What was meant, and what the provider holds"),
    row("intents", audit.intents, `${retired} more were retired before they were sent`),
    row(
      "requests at the provider",
      audit.providerRequests,
      `${provider.totals.mails} mails, ${provider.totals.withdrawals} withdrawn`,
    ),
    row("confirmed VOIDs", voids),
    verdict("duplicates", audit.duplicates),
    verdict("missing", audit.missing),
    verdict("wrong voids", audit.wrongVoids),
    row("passed through UNKNOWN", audit.throughUnknown, "neither success nor failure until there was evidence"),
    row("  settled by lookup", settledBy.lookup),
    row("  settled by webhook", settledBy.webhook),
    row("  settled by late answer", settledBy.lateAnswer),
    row("  declined, then sent", settledBy.declined),
    row("  left to a person", settledBy.review),
    row("faults dealt", provider.faults.dealt, `first attempts spoiled, of ${provider.faults.toDeal} to deal`),
    ...(applied === "" ? [] : [pc.dim(`  all faults: ${applied}`)]),
    "",
    isClean(audit)
      ? pc.green("Each intent that was to be sent has exactly one request at the provider.")
      : pc.red("The provider does not hold what was meant."),
  ].join("\n");
}

const longestList = 10;

/** Operations with something wrong: what, how to ask about it, and the answer. */
export async function findingsText(ledger: Ledger, findings: readonly Finding[]): Promise<string> {
  const parts: string[] = [];
  for (const { tenantId, operationId, kind, problem } of findings.slice(0, longestList)) {
    const operation = await getOperation(ledger, tenantId, operationId);
    const head = `${kind}: ${operationId} of ${tenantId}: ${problem}\n  ${explainCommand(tenantId, operationId)}`;
    if (operation === undefined) {
      parts.push(head);
      continue;
    }
    const { answer, because, next } = explain(operation, await getHistory(ledger, tenantId, operationId));
    parts.push([head, answer, ...because, next].join("\n    "));
  }
  if (findings.length > longestList) parts.push(`… and ${findings.length - longestList} more`);
  return parts.join("\n");
}

/** How to ask what happened to an operation. */
export function explainCommand(tenantId: string, operationId: string): string {
  return `npm run countersign -- explain --tenant ${tenantId} ${operationId}`;
}

/** Operations that still move, or wait for one that does not. */
export function unresolvedText(rows: readonly OperationRow[]): string {
  const open = rows.filter(
    ({ state }) => !["CONFIRMED", "TERMINAL_FAILED", "SUPERSEDED", "NEEDS_REVIEW"].includes(state),
  );
  const lines = open
    .slice(0, longestList)
    .map(
      ({ action, tenantId, operationId, state, reason, waiting }) =>
        `  ${action} ${state} (${reason}${waiting ? ", waits for another" : ""}): ${explainCommand(tenantId, operationId)}`,
    );
  return [`${open.length} operations are not resolved yet:`, ...lines].join("\n");
}
