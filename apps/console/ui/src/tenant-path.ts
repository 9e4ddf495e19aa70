import { query } from "./api.js";

/** Details of one tenant have no place in another: its list has. */
const lists: Record<string, string> = { inbox: "quarantine" };

/** Where the page at a path leads when another tenant is chosen; an empty tenant: all of them. */
export function elsewhere(path: string, tenant: string): string {
  const list = /^\/t\/[^/]+\/([^/]+)/.exec(path)?.[1];
  return list === undefined ? `${path}${query({ tenant })}` : `/t/${tenant}/${lists[list] ?? list}`;
}
