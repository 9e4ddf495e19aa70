import type { Problem } from "@countersign/client";

/** What to do about a refusal whose title alone does not say it, by its code. */
const byCode: Record<string, string> = {
  "evidence-moved": "Something came in meanwhile. Read the page again, then decide on what it says now.",
  "too-early": "An attempt may still become visible. Wait for the time that the page names, then decide.",
  "not-in-review": "It was decided, or settled by itself. Read the operation: it says how it ended.",
  "ticket-closed": "Somebody closed it before. The ticket says who, and why.",
  "dependants-undecided": "Operations wait for it. Choose what becomes of them.",
  "event-is-settled": "Nothing is left to do about this event.",
  "body-erased": "Its bytes are gone after their days, so it cannot be applied. Discard it, with a reason.",
  "provider-unreachable": "Nothing was decided. Try again when the provider answers.",
  unavailable: "Nothing is lost. Try again in a few seconds; the runbook says what to look at.",
};

const byStatus: Record<number, string> = {
  0: "Check that the console runs and that your network reaches it. If you were doing something, look whether it was done before you do it again.",
  400: "Correct what is named, and send it again.",
  401: "Log in again.",
  403: "Your login may not do this. Ask for the role of an operator, or for access to the tenant.",
  404: "It is not there, or not in a tenant that you may see. Check the tenant at the top of the page.",
  409: "It has changed since you read it. Read the page again.",
  422: "Correct what is named, and send it again.",
  429: "Too many requests. Wait a minute, then try again.",
  500: "A fault of the console. Look whether it was done before you do it again; its log names the error.",
  503: "Try again in a few seconds.",
};

/** One sentence or two on what to do about an error answer; `status` 0: nobody answered. Empty where nothing can be said. */
export function adviceOn(status: number, problem: Partial<Problem>): string {
  const code = problem.type?.split("/").at(-1) ?? "";
  return byCode[code] ?? byStatus[status] ?? (status > 500 ? (byStatus[500] ?? "") : "");
}
