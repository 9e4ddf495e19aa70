/** SQL for the first operation or inbox id (UUIDv7) of a moment: ids sort by time, so the index of ids finds what is old. */
export const firstIdAt = (moment: string): string =>
  `(lpad(to_hex((EXTRACT(EPOCH FROM ${moment}) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid`;
