import { type Action, canonicalJson, type NeutralPayload, sha256, type TargetPayload } from "@countersign/runtime";

/** What a VOID, RESEND or FINALIZE acts on: an operation of ours, or a reference known from elsewhere. */
export type Target = { operationId: string } | { providerRef: string };

/** Everything that an approval covers (DESIGN §4 "Hash"). */
export type Approved =
  | { action: "SEND"; connectionId: string; payload: NeutralPayload }
  | { action: Exclude<Action, "SEND">; connectionId: string; payload: TargetPayload; target: Target };

/** The hashed parts by the names that a conflict reports. File names and metadata are left out on purpose. */
function hashedParts(approved: Approved): Record<string, unknown> {
  const common = { action: approved.action, connection: approved.connectionId, message: approved.payload.message };
  if (approved.action !== "SEND") return { ...common, target: approved.target };
  const { payload } = approved;
  return {
    ...common,
    documents: payload.documents.map((document) => document.sha256),
    template: payload.template,
    signers: payload.signers,
    fields: payload.fields,
    expiresInDays: payload.expiresInDays,
    reminders: payload.reminders,
    observers: payload.observers,
    locale: payload.locale,
    signingMode: payload.signingMode,
    stageOnly: payload.stageOnly,
  };
}

export interface PayloadHash {
  /** SHA-256 over the canonical JSON (RFC 8785) of all parts with their schema version: 32 bytes. */
  hash: Buffer;
  /** Digest per part, hex: compared to name what differs. Never shown outside the ledger. */
  parts: Record<string, string>;
  schemaVersion: number;
}

/** Deterministic: the same approval gives the same hash whatever its key order or spacing was. */
export function payloadHash(approved: Approved): PayloadHash {
  const present = Object.entries(hashedParts(approved)).filter(([, value]) => value !== undefined);
  const parts = Object.fromEntries(
    present.map(([name, value]) => [name, sha256(canonicalJson(value)).toString("hex")]),
  );
  const schemaVersion = approved.payload.schemaVersion;
  return { hash: sha256(canonicalJson({ schemaVersion, ...Object.fromEntries(present) })), parts, schemaVersion };
}

/** Names of the parts in which two approvals differ; never their values. */
export function differingParts(a: Record<string, string>, b: Record<string, string>): string[] {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].filter((name) => a[name] !== b[name]).sort();
}
