/**
 * A provider reference that can be stored and put into a path: 1–255 printable ASCII characters without space. "." and
 * ".." would change the path on the way. Anything else is no reference.
 */
export function usableReference(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "." || value === "..") return undefined;
  return /^[\x21-\x7e]{1,255}$/.test(value) ? value : undefined;
}
