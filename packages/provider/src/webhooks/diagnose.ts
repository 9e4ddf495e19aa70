import type { DeliveryHeaders, WebhookSecret } from "../port.js";
import { type ByteChange, bodyVariants, bytesInWords } from "./body-variants.js";
import type { WebhookScheme } from "./scheme.js";
import { type SecretMistake, secretInWords, secretVariants } from "./secret-variants.js";

/** Everything that a delivery may have been signed with by mistake, besides what it should have been. */
export interface DiagnosisSecrets {
  /** The endpoint's active secrets. */
  readonly current: readonly WebhookSecret[];
  /** Those of the same endpoint that are no longer accepted. */
  readonly retired: readonly WebhookSecret[];
  /** Those of other endpoints, each with a name that may be shown. */
  readonly others: readonly { readonly label: string; readonly secret: string }[];
}

/** Which part of a delivery is wrong. Its texts never hold a secret, a signature or anything of the body. */
export type Diagnosis = (
  | { readonly part: "ok"; readonly secretId: string }
  | { readonly part: "header"; readonly problem: "missing" | "malformed"; readonly header: string }
  /** `offsetMs`: signed time minus now; negative is the past. */
  | { readonly part: "time"; readonly secretId: string; readonly offsetMs: number }
  | { readonly part: "secret"; readonly problem: "retired"; readonly secretId: string }
  | { readonly part: "secret"; readonly problem: "other-endpoint"; readonly label: string }
  | { readonly part: "secret"; readonly problem: SecretMistake; readonly secretId: string }
  | { readonly part: "secret"; readonly problem: "unknown" }
  | { readonly part: "bytes"; readonly problem: ByteChange; readonly secretId: string }
  | { readonly part: "bytes"; readonly problem: "unreadable" }
  /** Nothing that was tried fits: honest, not a guess. */
  | { readonly part: "secret-or-bytes" }
) & { readonly message: string; readonly remedy: string };

/**
 * Tells which part of a delivery is wrong: header, time, secret or bytes. Tries every secret given, the usual mistakes with
 * them, and the usual things that happen to a body on its way; where none fits it says that it can't tell. Pure; never throws.
 */
export function diagnoseDelivery(
  scheme: WebhookScheme,
  rawBody: Uint8Array,
  headers: DeliveryHeaders,
  secrets: DiagnosisSecrets,
  nowMs: number,
): Diagnosis {
  const verified = scheme.verify(rawBody, headers, secrets.current, nowMs);
  if (verified.ok) {
    const { secretId } = verified;
    return {
      part: "ok",
      secretId,
      message: `It verifies, with secret ${secretId}.`,
      remedy: "Nothing needs to be done.",
    };
  }
  if (verified.reason === "timestamp-out-of-window") return offTime(scheme, verified, nowMs);
  const parts: Parts = { scheme, rawBody, headers, secrets, nowMs };
  return unreadable(parts) ?? wrongSecret(parts) ?? changedBytes(parts) ?? inTheDark(scheme);
}

interface Parts {
  readonly scheme: WebhookScheme;
  readonly rawBody: Uint8Array;
  readonly headers: DeliveryHeaders;
  readonly secrets: DiagnosisSecrets;
  readonly nowMs: number;
}

/** The secret that a delivery's proof fits, whenever it was signed. */
function matching({ scheme, headers, nowMs }: Parts, body: Uint8Array, secrets: readonly WebhookSecret[]) {
  const result = scheme.verify(body, headers, secrets, nowMs);
  return result.ok || result.reason === "timestamp-out-of-window" ? result.secretId : undefined;
}

function offTime(
  { toleranceMs = 0 }: WebhookScheme,
  { secretId, signedAt }: { secretId: string; signedAt: number },
  nowMs: number,
): Diagnosis {
  const offsetMs = signedAt - nowMs;
  const [seconds, window] = [Math.round(Math.abs(offsetMs) / 1000), toleranceMs / 1000];
  const past = offsetMs < 0;
  return {
    part: "time",
    secretId,
    offsetMs,
    message: `The signature is right (secret ${secretId}), but it was made ${seconds} s ${past ? "before" : "after"} now, and only ${window} s either way are accepted.`,
    remedy: past
      ? "Likely an old delivery sent again, which stays refused: let the sender deliver the event anew, and if fresh deliveries fail too, compare this machine's clock."
      : "Likely a clock: compare this machine's, which may be behind, and the sender's, which may be ahead; a time in milliseconds instead of seconds looks the same.",
  };
}

function unreadable({ scheme, rawBody, headers, secrets, nowMs }: Parts): Diagnosis | undefined {
  const fault = scheme.fault(rawBody, headers);
  if (fault === undefined) return undefined;
  if (fault.header !== undefined) {
    return {
      part: "header",
      problem: fault.reason === "missing-header" ? "missing" : "malformed",
      header: fault.header,
      message: `The header ${fault.header} ${fault.fault}.`,
      remedy: `Check that the sender signs as ${scheme.title} does, and that no proxy drops or rewrites the header.`,
    };
  }
  const bytes = changedBytes({ scheme, rawBody, headers, secrets, nowMs });
  return (
    bytes ?? {
      part: "bytes",
      problem: "unreadable",
      message: `The body ${fault.fault}.`,
      remedy: "Check that the body is what the sender sent, and that the endpoint speaks the sender's scheme.",
    }
  );
}

function wrongSecret(parts: Parts): Diagnosis | undefined {
  const { scheme, rawBody, headers, secrets } = parts;
  const retired = matching(parts, rawBody, secrets.retired);
  if (retired !== undefined) {
    return {
      part: "secret",
      problem: "retired",
      secretId: retired,
      message: `It was signed with secret ${retired} of this endpoint, which is retired.`,
      remedy: "Give the sender the current secret, or rotate the endpoint back to the one that the sender uses.",
    };
  }
  const others = secrets.others.map(({ label, secret }) => ({ secretId: label, secret }));
  const label = matching(parts, rawBody, others);
  if (label !== undefined) {
    return {
      part: "secret",
      problem: "other-endpoint",
      label,
      message: `It was signed with the secret of another endpoint: ${label}.`,
      remedy: "Point the sender at that endpoint's URL, or give this endpoint the sender's secret.",
    };
  }
  for (const { secretId, secret } of secrets.current) {
    for (const { problem, text, key } of secretVariants(secret)) {
      const fits =
        (text !== undefined && matching(parts, rawBody, [{ secretId, secret: text }]) !== undefined) ||
        scheme.fitsKey?.(rawBody, headers, key) === true;
      if (fits) return { part: "secret", problem, secretId, ...secretInWords(problem, secretId) };
    }
  }
  return undefined;
}

function changedBytes(parts: Parts): Diagnosis | undefined {
  for (const { problem, body } of bodyVariants(parts.rawBody)) {
    const secretId = matching(parts, body, parts.secrets.current);
    if (secretId !== undefined) return { part: "bytes", problem, secretId, ...bytesInWords(problem) };
  }
  return undefined;
}

function inTheDark({ covers }: WebhookScheme): Diagnosis {
  if (covers === "nothing") {
    return {
      part: "secret",
      problem: "unknown",
      message: "The secret in the header is none that is known here.",
      remedy: "Copy the secret from the sender's settings again and rotate the endpoint to it.",
    };
  }
  return {
    part: "secret-or-bytes",
    message:
      "No signature fits: either the secret is another one or the bytes are not those that were signed; which, can't be told.",
    remedy:
      "Copy the secret from the sender's settings again; if it still fails, capture the raw body before any proxy or framework touches it.",
  };
}
