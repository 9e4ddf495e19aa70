const uuid = /^([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})$/i;

/** Where a row's trace begins. */
export interface TraceRoot {
  /** The row's UUID, its 128 bits. */
  readonly traceId: string;
  /** The UUID's last 64 bits: every process can name the first span without having seen it. */
  readonly spanId: string;
}

/** The trace of the row with this id; undefined where it is no UUID. */
export function traceRootOf(id: string): TraceRoot | undefined {
  const parts = uuid.exec(id.toLowerCase())?.slice(1);
  if (parts === undefined) return undefined;
  const spanId = parts.slice(3).join("");
  const traceId = parts.join("");
  // All zeros name nothing (W3C Trace Context).
  return /^0+$/.test(spanId) ? undefined : { traceId, spanId };
}

/** The `traceparent` under which a row's trace goes on. */
export function traceparentFor(id: string): string | undefined {
  const root = traceRootOf(id);
  return root === undefined ? undefined : `00-${root.traceId}-${root.spanId}-01`;
}
