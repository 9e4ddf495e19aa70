import type { PlannedOperation } from "@countersign/ledger";
import type { ApiDeps } from "./deps.js";

/** Hands over what is PLANNED and waits for nobody, after its commit. */
export function handOverPlanned(deps: ApiDeps, tenantId: string, planned: readonly PlannedOperation[]): void {
  const due = planned.filter((each) => !each.waiting && each.state === "PLANNED");
  deps.handOver(
    due.map(({ operationId, eventNo }) => ({
      queue: "submit",
      tenantId,
      kind: "operation",
      subjectId: operationId,
      eventNo,
      dispatches: 0,
    })),
  );
}
