import { ProblemError } from "@countersign/api";

const windowMs = 60_000;
const allowed = 30;

/** After so many wrong tokens within a minute nobody logs in until it is over: tokens can't be tried out by the million. */
export class LoginBrake {
  #since = 0;
  #failures = 0;

  /** @throws ProblemError 429 */
  check(): void {
    const left = this.#since + windowMs - performance.now();
    if (left <= 0) this.#failures = 0;
    if (this.#failures < allowed) return;
    throw new ProblemError(
      429,
      "too-many-logins",
      "Too many wrong tokens: wait a minute",
      {},
      { "retry-after": String(Math.ceil(left / 1_000)) },
    );
  }

  failed(): void {
    if (this.#failures === 0) this.#since = performance.now();
    this.#failures += 1;
  }
}
