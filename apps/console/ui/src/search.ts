/** What is searched for. It stands in no URL, since it may be somebody's address; the history keeps it for the way back. */
export type Wanted = { text: string } | { documentSha256: string };

/** Reads what an entry of the history was given; undefined where it holds no search. */
export function wantedOf(state: unknown): Wanted | undefined {
  if (typeof state !== "object" || state === null) return undefined;
  if ("text" in state && typeof state.text === "string") return { text: state.text };
  if ("documentSha256" in state && typeof state.documentSha256 === "string") {
    return { documentSha256: state.documentSha256 };
  }
  return undefined;
}

/** SHA-256 in lower-case hex, made in the browser: the bytes leave it nowhere. */
export async function sha256Of(bytes: ArrayBuffer): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
