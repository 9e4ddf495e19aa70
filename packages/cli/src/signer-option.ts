import type { NeutralPayloadInput } from "@countersign/runtime";
import { UsageError } from "./errors.js";

export type SignerInput = NeutralPayloadInput["signers"][number];

const keys = ["role", "email", "order", "name"] as const;
// A comma ends a value only where a key follows, so that a name may hold one.
const separator = /,(?=[a-z]+=)/;

/**
 * `role=customer,email=…,order=1,name=…`. The order may be left out for a single signer. Errors name the signer by its
 * place and never repeat the value.
 * @throws UsageError
 */
export function parseSigners(texts: readonly string[]): SignerInput[] {
  return texts.map((text, index) => {
    const nth = `--signer ${index + 1}`;
    const values = new Map<string, string>();
    for (const pair of text.split(separator)) {
      const at = pair.indexOf("=");
      const key = pair.slice(0, Math.max(0, at));
      if (!keys.some((known) => known === key)) {
        throw new UsageError(`${nth} must be role=…,email=…,order=…,name=…; it has something else`);
      }
      if (values.has(key)) throw new UsageError(`${nth} has ${key} twice; leave one out`);
      values.set(key, pair.slice(at + 1));
    }
    const email = values.get("email");
    const role = values.get("role");
    const name = values.get("name");
    if (email === undefined || role === undefined) throw new UsageError(`${nth} needs both role= and email=`);
    const order = orderOf(values.get("order"), nth, texts.length);
    return { email, role, order, ...(name === undefined ? {} : { name }) };
  });
}

function orderOf(text: string | undefined, nth: string, signers: number): number {
  if (text === undefined) {
    if (signers === 1) return 1;
    throw new UsageError(`${nth} needs order=: with several signers nobody guesses who signs first`);
  }
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new UsageError(`${nth} has an order that is not a whole number from 1`);
  return Number(text);
}
