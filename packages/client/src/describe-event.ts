import {
  type InboxEvent,
  type Ledger,
  listTickets,
  NotFoundError,
  readSigning,
  type Ticket,
} from "@countersign/ledger";
import type { SignatureProvider } from "@countersign/provider";
import { dryRunReplay } from "./dry-run-replay.js";
import type { ReplayPreview } from "./schema-inbox.js";

export interface EventDescription {
  event: InboxEvent;
  /** The request that it speaks of, where it names one. `status` null: the provider has said nothing of it that counts. */
  request: { reference: string; status: string | null; operationId: string | null } | null;
  tickets: Ticket[];
  /** What a replay would do now. */
  replay: ReplayPreview;
}

/** An event with its request, its tickets and what a replay would do now; never its bytes. Throws not-found. */
export async function describeEvent(
  ledger: Ledger,
  provider: (name: string) => SignatureProvider | undefined,
  event: { tenantId: string; inboxId: string },
): Promise<EventDescription> {
  const { tenantId } = event;
  const { rows } = await dryRunReplay(ledger, { tenantId, filter: { ids: [event.inboxId] }, limit: 1, provider });
  const [row] = rows;
  if (row === undefined) throw new NotFoundError("event");
  // Its id as the ledger writes it: tickets name it as text.
  const { inboxId, connectionId, providerRef } = row.event;
  const [tickets, standing] = await Promise.all([
    listTickets(ledger, tenantId, 100, { status: "all", subjectId: inboxId }),
    providerRef === null ? undefined : readSigning(ledger.sql, { tenantId, connectionId, providerRef }),
  ]);
  const request =
    providerRef === null
      ? null
      : {
          reference: providerRef,
          status: standing?.status ?? null,
          operationId: standing?.operationId ?? null,
        };
  return { event: row.event, request, tickets, replay: row.preview };
}
