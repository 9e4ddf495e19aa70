import { z } from "zod";

/** The actions of the ledger (seeds/000 §"Build it", DESIGN §3). */
export const actions = ["SEND", "VOID", "RESEND", "FINALIZE"] as const;
export type Action = (typeof actions)[number];

// Control characters would let one field pretend to be two in a header, a log line or a mail.
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
const noControl = /^[^\u0000-\u001f\u007f]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: newline and tab are fine in a message, the others are not
const noControlButBreaks = /^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$/;
const isWellFormed = (text: string): boolean => text.isWellFormed();

const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(noControl, "must not contain control characters")
    .refine(isWellFormed, "must not contain an unpaired surrogate");

const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(noControlButBreaks, "must not contain control characters")
    .refine(isWellFormed, "must not contain an unpaired surrogate");

const email = z
  .string()
  .max(254)
  .regex(noControl, "must not contain control characters")
  .regex(/^[^\s@<>,;"]+@[^\s@<>,;"]+\.[^\s@<>,;"]+$/, "must be one address of the form name@example.com");

/** SHA-256 in lower-case hex: 64 characters. */
export const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 digest in lower-case hex");

const signer = z.strictObject({
  email,
  role: line(64),
  /** Signing order, from 1; signers with the same number sign in parallel. */
  order: z.int().min(1).max(100),
  name: line(200).optional(),
});

const field = z.strictObject({
  type: z.enum(["signature", "initials", "date", "text", "checkbox"]),
  role: line(64),
  /** Which document of `documents`, from 0. */
  document: z.int().min(0).max(49).default(0),
  /** Page, from 1. */
  page: z.int().min(1).max(10_000),
  /** Position and size as fractions of the page, origin top left. */
  x: z.number().min(0).max(1),
  y: z.number().min(0).max(1),
  width: z.number().min(0).max(1).optional(),
  height: z.number().min(0).max(1).optional(),
  required: z.boolean().optional(),
});

/**
 * What a person or policy approved, in no provider's words (DESIGN §9). `schemaVersion` is stored with it, so that a
 * repeat is compared under the version it was planned with. File names and `metadata` are not part of the hash.
 */
export const neutralPayload = z
  .strictObject({
    schemaVersion: z.literal(1).default(1),
    documents: z
      .array(z.strictObject({ sha256: sha256Hex, fileName: line(255).optional() }))
      .max(50)
      .default([]),
    template: z.strictObject({ id: line(200), values: z.record(line(200), text(5000)).optional() }).optional(),
    signers: z.array(signer).min(1).max(50),
    fields: z.array(field).max(500).optional(),
    message: text(5000).optional(),
    expiresInDays: z.int().min(1).max(365).optional(),
    reminders: z.strictObject({ everyDays: z.int().min(1).max(90) }).optional(),
    observers: z.array(email).max(50).optional(),
    locale: z
      .string()
      .regex(/^[a-z]{2}(-[A-Z]{2})?$/, "must look like en or en-GB")
      .optional(),
    signingMode: z.enum(["sequential", "parallel"]).optional(),
    /** Stage only: nobody is mailed until a later operation confirms it. */
    stageOnly: z.boolean().optional(),
    metadata: z.record(z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/), line(500)).optional(),
  })
  .refine((payload) => payload.documents.length > 0 || payload.template !== undefined, {
    path: ["documents"],
    message: "name at least one document by sha256, or a template",
  });

export type NeutralPayload = z.output<typeof neutralPayload>;
export type NeutralPayloadInput = z.input<typeof neutralPayload>;

/**
 * The payload of VOID, RESEND and FINALIZE: what they act on stands beside it (`target`), only words to the signer are here.
 */
export const targetPayload = z.strictObject({
  schemaVersion: z.literal(1).default(1),
  message: text(5000).optional(),
});
export type TargetPayload = z.output<typeof targetPayload>;
