import type { Ledger } from "./database.js";

export interface ProcessIdentity {
  processId: string;
  kind: string;
  host: string;
  pid: number;
}

/** Says that a process lives; the first call registers it. */
export async function beat(ledger: Ledger, process: ProcessIdentity): Promise<void> {
  await ledger.sql`
    INSERT INTO worker_process (process_id, kind, host, pid)
    VALUES (${process.processId}, ${process.kind}, ${process.host}, ${process.pid})
    ON CONFLICT (process_id) DO UPDATE SET heartbeat_at = now()`;
}

/** Says that a process ended in good order. */
export async function sayGoodbye(ledger: Ledger, processId: string): Promise<void> {
  await ledger.sql`UPDATE worker_process SET stopped_at = now(), heartbeat_at = now() WHERE process_id = ${processId}`;
}
