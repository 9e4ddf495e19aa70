import { instant } from "@countersign/client";
import { intentKey, operationId, tenantId } from "@countersign/runtime";
import { z } from "zod";
import { UsageError } from "./errors.js";
import type { CliIo } from "./io.js";

/** `--tenant`, as every command that has one checks it. */
export const tenantOption = tenantId;
export const intentOption = intentKey.refine((key) => !key.startsWith("cs:"), "must not start with cs:, which is ours");
export const operationOption = operationId;
export const connectionOption = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "must be 1 to 63 of letters, digits, dot, _ and -");
/** Opaque ids of people or policies. */
export const actorOption = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 printable characters without space");

/** Why a person decides; kept for ever. */
export const reasonOption = z.string().trim().min(1, "must not be empty").max(500, "must be at most 500 characters");
export const endpointOption = z
  .string()
  .regex(
    /^we_[A-Za-z0-9_-]{1,64}$/,
    "must be the id of a webhook endpoint: we_…, as `webhook-endpoint list` prints it",
  );

const durationText = /^(\d{1,6})(s|m|h|d)$/;
const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function durationOf(text: string): number | undefined {
  const [, count, unit = ""] = durationText.exec(text) ?? [];
  const each = unitMs[unit];
  return count === undefined || each === undefined ? undefined : Number(count) * each;
}

/** A duration as people write it, `90s`, `15m`, `24h`, `7d`, in ms. */
export const durationOption = z
  .string()
  .regex(durationText, "must be a duration: 90s, 15m, 24h or 7d")
  .transform((text) => durationOf(text) ?? 0);

/** An instant, or how long ago it was, as ISO text. */
export const instantOption = z
  .union([instant, z.string().regex(durationText)], {
    error: "must be how long ago (15m, 24h, 7d) or an instant (2026-01-31T08:00:00Z)",
  })
  .transform((text) => {
    const agoMs = durationOf(text);
    return agoMs === undefined ? text : new Date(Date.now() - agoMs).toISOString();
  });

/** A whole number given as text. */
export const integerOption = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,12}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`);

/** `name=value` pairs of a repeated option, each of the known names at most once. */
export function named<Name extends string>(
  option: string,
  names: readonly Name[],
  pairs: readonly string[],
): Partial<Record<Name, string>> {
  const result: Partial<Record<Name, string>> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    const name = names.find((known) => known === pair.slice(0, Math.max(0, at)));
    const value = pair.slice(at + 1).trim();
    if (name === undefined || value === "") {
      throw new UsageError(`${option} must be name=value, the name one of ${names.join(", ")}; see --help`);
    }
    if (result[name] !== undefined) throw new UsageError(`${option} names ${name} twice; leave one out`);
    result[name] = value;
  }
  return result;
}

const maxSecretBytes = 64 * 1024;

/**
 * A secret from standard input. It is never an argument: those stand in process lists and shell histories.
 * @throws UsageError
 */
export async function secretFromStdin(io: CliIo, option: string): Promise<string> {
  const secret = (await io.stdin(maxSecretBytes)).toString("utf8").replace(/\r?\n$/, "");
  if (secret === "") {
    throw new UsageError(
      `${option} found nothing on standard input; pipe the secret in: printf %s "$SECRET" | countersign …`,
    );
  }
  if (!/^[\x21-\x7e]{1,4096}$/.test(secret)) {
    throw new UsageError(`${option} takes one line of printable characters without spaces; check what is piped in`);
  }
  return secret;
}
