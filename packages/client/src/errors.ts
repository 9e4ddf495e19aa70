import type { Problem } from "./schema.js";

/** The API refused: its problem details. Trying the same again gives the same answer. */
export class CountersignProblem extends Error {
  override readonly name = "CountersignProblem";
  readonly status: number;
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(`${problem.status} ${problem.title}${problem.detail === undefined ? "" : `: ${problem.detail}`}`);
    this.status = problem.status;
    this.problem = problem;
  }
}

/**
 * No answer in the tries allowed. Nothing is known about the last try: ask again later with the *same* intent key, which
 * returns the operation if it was recorded.
 */
export class RetriesExhaustedError extends Error {
  override readonly name = "RetriesExhaustedError";
  readonly tries: number;
  constructor(tries: number, cause: unknown, remedy = "ask again with the same intent key") {
    super(`no answer after ${tries === 1 ? "1 try" : `${tries} tries`}: ${remedy}`, { cause });
    this.tries = tries;
  }
}
