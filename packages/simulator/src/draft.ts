import { z } from "zod";
import { ProviderError } from "./answer.js";
import { checkHookUrl } from "./hook.js";
import type { RequestDraft } from "./signing-request.js";

/** Fields of a request before they are checked: parsed JSON of one endpoint, or of the form fields of the other. */
export type RawFields = Readonly<Record<string, unknown>>;

const DEFAULT_EXPIRY_DAYS = 30;
const CONTROL_CHARACTERS = /\p{Cc}/u;

const email = z
  .string()
  .max(320)
  .refine((text) => /^[^\s@]+@[^\s@]+$/.test(text) && !CONTROL_CHARACTERS.test(text));
const signers = z
  .array(z.object({ email, role: z.string().min(1).max(100) }))
  .min(1)
  .max(50);
const metadata = z.record(z.string().max(100), z.string().max(1_000)).refine((map) => Object.keys(map).length <= 50);
const days = z.int().min(1).max(365);

/** Fields that are checked for their form and otherwise make no difference to the simulation. */
const CHECKED_ONLY = {
  placement: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown()), z.string()]),
  fields: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]),
  observer_emails: z.array(email).max(50),
  signing_mode: z.enum(["parallel", "sequential"]),
  locale: z.string().regex(/^[a-z]{2}([-_][A-Za-z]{2})?$/),
  placement_assignee_email: email,
  filename: z.string().min(1).max(255),
} as const;

/** Reads one field, or its default where it is absent. @throws ProviderError 422 `invalid_<name>`. */
function field<T>(raw: RawFields, name: string, schema: z.ZodType<T>, absent: T): T {
  const value = raw[name];
  if (value === undefined) return absent;
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new ProviderError(422, `invalid_${name}`, `The field ${name} is not valid.`);
  return parsed.data;
}

/** Whether a switch of the request is on. @throws ProviderError 422 when it is neither true nor false. */
export function flag(raw: RawFields, name: string, absent: boolean): boolean {
  return field(raw, name, z.boolean(), absent);
}

/** Reads `expires_in_days` where it must be given. */
export function expiryDays(raw: RawFields): number {
  const value = field<number | undefined>(raw, "expires_in_days", days, undefined);
  if (value === undefined)
    throw new ProviderError(422, "invalid_expires_in_days", "The field expires_in_days is missing.");
  return value;
}

/** What the draft is made for. */
export interface DraftContext {
  readonly kind: "esign" | "file";
  readonly documentDigest: string;
  readonly allowLoopback: boolean;
}

/** Validates the fields of a request. @throws ProviderError 422 naming the field. */
export function draftFrom(raw: RawFields, context: DraftContext): RequestDraft {
  const recipients = field(raw, "signers", signers, []);
  if (context.kind === "esign" && recipients.length === 0) {
    throw new ProviderError(422, "invalid_signers", "At least one signer is needed.");
  }
  for (const [name, schema] of Object.entries(CHECKED_ONLY)) field<unknown>(raw, name, schema, undefined);
  const callbackUrl = field<string | undefined>(raw, "callback_url", z.string(), undefined);
  if (callbackUrl !== undefined) checkHookUrl(callbackUrl, context.allowLoopback, "invalid_callback_url");
  return {
    kind: context.kind,
    signers: context.kind === "file" ? [] : recipients,
    metadata: field(raw, "metadata", metadata, {}),
    sendEmails: flag(raw, "send_emails", true),
    review: flag(raw, "review", false),
    expiresInDays: field(raw, "expires_in_days", days, DEFAULT_EXPIRY_DAYS),
    callbackUrl,
    documentDigest: context.documentDigest,
  };
}
