import type { OpenDecision } from "@countersign/client";
import type { StoredReference } from "@countersign/ledger";

/** A reference as people read it. */
export const referenceLine = ({ providerRef, role, status }: StoredReference): string =>
  `reference ${providerRef}: ${status ?? "status unknown"} (${role})`;

/** What a decision would do, before it is taken. */
export function consequence({ decision, reference, voids, leftAlone, dependants }: OpenDecision): string {
  const what = decision === "abandon" ? "keep none" : reference === null ? "take it as done" : `keep ${reference}`;
  const parts = [
    voids.length === 0 ? "no VOID" : `a VOID for ${voids.join(", ")}`,
    ...(leftAlone.length === 0 ? [] : [`over already: ${leftAlone.join(", ")}`]),
    ...(dependants.length === 0 ? [] : [`--dependants must say ${dependants.join(", ")}`]),
  ];
  return `${what}: ${parts.join("; ")}`;
}
