import type { TransactionSql } from "./database.js";
import { type InboxRow, quarantineInbox, settleInbox, waitForBinding } from "./inbox-settle.js";
import { moveSigning, type SigningKey } from "./signing.js";
import type { SigningStatus } from "./signing-table.js";
import { openTicket } from "./tickets.js";

/** What telling an event came to. */
export interface Told {
  kind: "applied" | "no-op" | "conflict" | "waiting" | "quarantined";
}

/** What became of one application of an event. `asking`: the provider is asked first. */
export type Application =
  | {
      kind: Told["kind"] | "asking";
      evidenceFor?: string;
      /** Whose request it speaks of, where that is known. */
      operationId?: string;
    }
  /** Somebody else settled the row meanwhile. */
  | { kind: "gone" };

/** A reference that nothing of ours is bound to: it is waited for, then a person's; bound later, it is applied all the same. */
export async function leaveUnbound(
  sql: TransactionSql,
  inbox: InboxRow,
  wait: { eventWaitMs: number; waitPassed: boolean },
): Promise<Told> {
  if (!wait.waitPassed) {
    await waitForBinding(sql, inbox, wait.eventWaitMs);
    return { kind: "waiting" };
  }
  await quarantineInbox(sql, inbox, "unmapped-reference");
  return { kind: "quarantined" };
}

/** Moves the signing row, or says why not, and settles the event with that. */
export async function tell(
  sql: TransactionSql,
  inbox: InboxRow,
  key: SigningKey,
  status: SigningStatus | undefined,
): Promise<Told> {
  if (status === undefined) {
    await settleInbox(sql, inbox, "NO_OP", "no-meaning-for-status");
    return { kind: "no-op" };
  }
  const moved = await moveSigning(sql, key, status);
  if (moved.kind === "conflict") return await conflict(sql, inbox, moved.outcome);
  await settleInbox(
    sql,
    inbox,
    moved.kind === "applied" ? "APPLIED" : "NO_OP",
    moved.kind === "applied" ? status : moved.outcome,
  );
  return { kind: moved.kind };
}

/** Two stories that can't both be true: settled as it is, and a person's. */
export async function conflict(sql: TransactionSql, inbox: InboxRow, reason: string): Promise<Told> {
  await settleInbox(sql, inbox, "CONFLICT", reason);
  await openTicket(sql, {
    tenantId: inbox.tenantId,
    kind: "signing-conflict",
    subjectKind: "inbox",
    subjectId: inbox.inboxId,
    reason,
  });
  return { kind: "conflict" };
}
