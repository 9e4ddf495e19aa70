import type { Ledger } from "@countersign/ledger";
import { type Check, CheckFailed } from "@countersign/runtime";

/** For `/readyz`: the inbox is there (the migrations have run), and this user may write to it on this server. */
export function inboxCheck(ledger: Ledger): Check {
  return {
    name: "inbox",
    run: async () => {
      const [row] = await ledger.sql<{ may: boolean; readonly: boolean }[]>`
        SELECT has_table_privilege('webhook_inbox', 'INSERT') AS may,
          current_setting('transaction_read_only')::boolean AS readonly`;
      if (row === undefined || row.readonly) throw new CheckFailed("database-read-only");
      if (!row.may) throw new CheckFailed("inbox-not-writable");
    },
  };
}
