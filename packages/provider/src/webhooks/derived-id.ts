import { sha256 } from "@countersign/runtime";

/** `derived:` and the SHA-256 of the JSON array of what makes an event itself, for senders that give it no id. */
export function derivedIdOf(values: readonly unknown[]): string {
  return `derived:${sha256(JSON.stringify(values)).toString("hex")}`;
}
