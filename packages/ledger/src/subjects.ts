import type { Approved } from "./hash.js";
import type { TenantKey } from "./keyring.js";
import { normaliseAddress } from "./normalise.js";

/** Whom or what an operation is about, as its index holds it (`operation_subject`). */
export interface SubjectToken {
  readonly kind: "signer" | "document";
  readonly token: Buffer;
}

/** The token under which a signer's operations are found: of the address without regard to case. */
export const signerToken = (key: TenantKey, email: string): Buffer =>
  key.blind("signer", normaliseAddress(email.trim()).toLowerCase());

/** The token under which a document's operations are found. @param sha256 lower-case hex */
export const documentToken = (key: TenantKey, sha256: string): Buffer => key.blind("document", sha256);

/** Of everybody who is to sign or to watch, and of every document; each once. What acts on a SEND is found through it. */
export function subjectTokens(key: TenantKey, approved: Approved): SubjectToken[] {
  if (approved.action !== "SEND") return [];
  const { documents, signers, observers = [] } = approved.payload;
  const found = new Map<string, SubjectToken>();
  const add = (kind: SubjectToken["kind"], token: Buffer): void => {
    found.set(`${kind} ${token.toString("hex")}`, { kind, token });
  };
  for (const { email } of signers) add("signer", signerToken(key, email));
  for (const email of observers) add("signer", signerToken(key, email));
  for (const { sha256 } of documents) add("document", documentToken(key, sha256));
  return [...found.values()];
}
