import Table from "cli-table3";
import pc from "picocolors";

/** A table for a terminal; one sentence where there is nothing to show. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], none: string): string {
  if (rows.length === 0) return none;
  const shown = new Table({ head: head.map((title) => pc.bold(title)), style: { head: [], border: [] } });
  for (const row of rows) shown.push([...row]);
  return shown.toString();
}
