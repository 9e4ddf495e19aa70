import type { LookupManyResult, LookupResult } from "@countersign/provider";
import { inSpan, type Logger } from "@countersign/runtime";

/** What a look is about, for its line and its span. */
export interface Look {
  readonly tenant: string;
  readonly connection: string;
  /** Along which path the provider is asked. */
  readonly kind: "reference" | "metadata" | "list";
  readonly operation?: string | undefined;
  readonly attempt?: number | undefined;
  /** Further operations that the same answer settles. */
  readonly related?: readonly string[];
}

type Failed = Extract<LookupResult, { kind: "failed" }>;

/** Asks the provider once: one line, one span. An adapter that throws has looked at nothing. */
export async function askProvider<Result extends LookupResult | LookupManyResult>(
  logger: Logger,
  { related = [], ...look }: Look,
  ask: () => Promise<Result>,
): Promise<Result | Failed> {
  const started = performance.now();
  const result = await inSpan({ name: "provider.lookup", of: look.operation, facts: look, related }, async (span) => {
    const answer = await guarded(ask);
    span.note({ outcome: answer.kind, ...(answer.kind === "failed" ? { reason: answer.cause } : {}) });
    return answer;
  });
  logger.info(
    {
      ...look,
      outcome: result.kind,
      ...(result.kind === "failed" ? { cause: result.cause } : {}),
      ...(related.length === 0 ? {} : { count: related.length + 1 }),
      ms: Math.round(performance.now() - started),
    },
    "provider asked",
  );
  return result;
}

async function guarded<Result>(ask: () => Promise<Result>): Promise<Result | Failed> {
  try {
    return await ask();
  } catch {
    return { kind: "failed", cause: "adapter-threw", ms: 0 };
  }
}
