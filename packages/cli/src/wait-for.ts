import { setTimeout as pause } from "node:timers/promises";
import { getOperation, isResolved, type Ledger, NotFoundError, type OperationView } from "@countersign/ledger";

/** Reads an operation until it is resolved or the time is over; the last reading. @throws NotFoundError */
export async function waitForResolution(
  ledger: Ledger,
  tenantId: string,
  operationId: string,
  timeoutMs: number,
): Promise<OperationView> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const operation = await getOperation(ledger, tenantId, operationId);
    if (operation === undefined) throw new NotFoundError("operation");
    if (isResolved(operation.state) || performance.now() >= end) return operation;
    await pause(250);
  }
}
