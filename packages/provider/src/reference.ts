/**
 * A provider reference that can be stored and put into a path: 1–255 printable ASCII characters without space. "." and
 * ".." would change the path on the way. Anything else is no reference.
 */
export function usableReference(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "." || value === "..") return undefined;
  return /^[\x21-\x7e]{1,255}$/.test(value) ? value : undefined;
}

/**
 * Can this be stored as an id, type or reference? 1–255 characters without control characters (PostgreSQL's text takes no
 * NUL) and without half a surrogate pair.
 */
export function storableText(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value.length >= 1 &&
    value.length <= 255 &&
    !/\p{Cc}/u.test(value) &&
    value.isWellFormed()
  );
}
