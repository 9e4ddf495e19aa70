import { domainToASCII } from "node:url";
import type { NeutralPayload } from "@countersign/runtime";

/**
 * One rule for addresses, used alike by intent, hash and request: the domain is folded to lower case and IDNA-encoded,
 * the local part (plus tag included) stays as it was approved, since only the receiving host may fold it (RFC 5321 §2.4).
 */
export function normaliseAddress(address: string): string {
  const at = address.lastIndexOf("@");
  const domain = domainToASCII(address.slice(at + 1));
  return `${address.slice(0, at)}@${domain === "" ? address.slice(at + 1).toLowerCase() : domain}`;
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * The form that is hashed, stored and sent: addresses by the one rule, signers in signing order (ties by role, then
 * address), observers sorted. What is approved is what goes out, so the request is prepared from this form too.
 */
export function normalisePayload(payload: NeutralPayload): NeutralPayload {
  const signers = payload.signers
    .map((signer) => ({ ...signer, email: normaliseAddress(signer.email) }))
    .sort((a, b) => a.order - b.order || byText(a.role, b.role) || byText(a.email, b.email));
  const observers = payload.observers?.map(normaliseAddress).sort(byText);
  return { ...payload, signers, ...(observers === undefined ? {} : { observers }) };
}
