/** `fail`: it does not work; `warn`: it will not for long, or nobody can tell; `skip`: it was not looked at. */
export const findingStatuses = ["ok", "warn", "fail", "skip"] as const;
export type FindingStatus = (typeof findingStatuses)[number];

/** One thing that the doctor looked at. Ids, codes, counts and times only. */
export interface Finding {
  readonly status: FindingStatus;
  /** Which look: `database`, `provider`, … */
  readonly check: string;
  /** Of what: `acme/main`; absent where there is only one. */
  readonly subject?: string;
  /** What was found. */
  readonly what: string;
  /** What to do; absent where there is nothing to do. */
  readonly remedy?: string;
}

/** A finding with its parts in the order in which they are read. */
export const finding = (
  status: FindingStatus,
  check: string,
  what: string,
  more: { subject?: string; remedy?: string } = {},
): Finding => ({
  status,
  check,
  ...(more.subject === undefined ? {} : { subject: more.subject }),
  what,
  ...(more.remedy === undefined ? {} : { remedy: more.remedy }),
});
