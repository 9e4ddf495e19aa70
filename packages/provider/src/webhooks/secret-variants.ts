/** What people do to a secret. */
export type SecretMistake = "without-prefix" | "with-prefix" | "white-space" | "base64-decoded" | "not-decoded";

/** A secret as it may have been used instead. */
export interface SecretVariant {
  readonly problem: SecretMistake;
  /** As the text of a secret, where it is one. */
  readonly text?: string;
  /** As the very bytes of a key. */
  readonly key: Uint8Array;
}

const prefix = "whsec_";

/** The secret as it is commonly mistaken: without or with its prefix, with white space, decoded or not. */
export function secretVariants(secret: string): SecretVariant[] {
  const trimmed = secret.trim();
  const bare = trimmed.startsWith(prefix) ? trimmed.slice(prefix.length) : trimmed;
  const spaced = [trimmed, `${trimmed}\n`, `${trimmed}\r\n`, `${trimmed} `, ` ${trimmed}`].filter(
    (text) => text !== secret,
  );
  return [
    ...spaced.map((text) => asText("white-space", text)),
    bare === trimmed ? asText("with-prefix", `${prefix}${trimmed}`) : asText("without-prefix", bare),
    { problem: "base64-decoded" as const, key: Buffer.from(bare, "base64") },
    // Where the scheme decodes, a sender that doesn't uses the text itself.
    { problem: "not-decoded" as const, key: Buffer.from(trimmed) },
  ];
}

const asText = (problem: SecretMistake, text: string): SecretVariant => ({ problem, text, key: Buffer.from(text) });

const words: Record<SecretMistake, { how: string; remedy: string }> = {
  "without-prefix": {
    how: "but without whsec_ in front",
    remedy: "Give the sender the whole text, or this endpoint the text that the sender really uses.",
  },
  "with-prefix": {
    how: "but with whsec_ in front",
    remedy: "Rotate this endpoint to the whole text, whsec_ included.",
  },
  "white-space": {
    how: "but white space was added or removed at its end or beginning",
    remedy: "Copy the secret anew, without a line break or space, on the side that has it.",
  },
  "base64-decoded": {
    how: "but decoded from base64 first",
    remedy: "The sender decodes the secret, as Standard Webhooks does: choose that scheme for the endpoint.",
  },
  "not-decoded": {
    how: "but as plain text, not decoded from base64",
    remedy: "The sender uses the text itself as the key: choose the scheme of the sender for the endpoint.",
  },
};

/** One sentence on the mistake and one on what to do. */
export const secretInWords = (problem: SecretMistake, secretId: string): { message: string; remedy: string } => ({
  message: `It was signed with secret ${secretId}, ${words[problem].how}.`,
  remedy: words[problem].remedy,
});
