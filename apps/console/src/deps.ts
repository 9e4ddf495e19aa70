import type { ApiDeps } from "@countersign/api";
import type { ConsoleOperator } from "@countersign/ledger";
import type { Queues } from "@countersign/queue";
import type { SessionCookies } from "./session-cookie.js";

/** What the console works with: what the routes of the API need, but for who calls, and its own. */
export interface ConsoleDeps extends Omit<ApiDeps, "authenticate"> {
  readonly queues: Queues;
  readonly cookies: SessionCookies;
  /** Set where everybody who reaches the address is trusted (loopback only): who they are then. */
  readonly everybody: ConsoleOperator | undefined;
  readonly sessionHours: number;
  readonly secureCookie: boolean;
  /** Folder of the built page. */
  readonly page: string;
}
