import { createHash } from "node:crypto";

/**
 * A number in [0, 1) that depends only on seed and label. Drawing by label instead of from a running generator keeps
 * a run the same however its calls interleave.
 */
export function draw(seed: string, label: string): number {
  const digest = createHash("sha256").update(seed).update("\0").update(label).digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/** The numbers 0 … count-1 in an order that depends only on seed and label. */
export function shuffledNumbers(seed: string, label: string, count: number): number[] {
  return Array.from({ length: count }, (_, number) => ({ number, weight: draw(seed, `${label}:${number}`) }))
    .sort((a, b) => a.weight - b.weight)
    .map(({ number }) => number);
}
