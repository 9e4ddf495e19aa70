import { clearScreenDown, moveCursor } from "node:readline";
import type { WriteStream } from "node:tty";
import { isResolved, type State, states } from "@countersign/ledger";
import pc from "picocolors";
import { countStates, type OperationGlance } from "./operations.js";

const barWidth = 40;
const plainEveryMs = 1_000;

const colours: Record<State, (text: string) => string> = {
  PLANNED: pc.blue,
  IN_FLIGHT: pc.cyan,
  UNKNOWN: pc.yellow,
  RECONCILING: pc.yellow,
  NEEDS_REVIEW: pc.red,
  CONFIRMED: pc.green,
  TERMINAL_FAILED: pc.red,
  SUPERSEDED: pc.gray,
};

/** Shows how far the operations are: redrawn in place in a terminal, a plain line now and then elsewhere. */
export class Progress {
  readonly #stream: NodeJS.WritableStream;
  readonly #terminal: WriteStream | undefined;
  readonly #expected: number;
  #drawn = 0;
  #lastLine = "";
  #lastAt = Number.NEGATIVE_INFINITY;

  /** `expected`: SENDs that will be planned. */
  constructor(stream: NodeJS.WriteStream, expected: number) {
    this.#stream = stream;
    this.#terminal = stream.isTTY ? stream : undefined;
    this.#expected = expected;
  }

  update(rows: readonly OperationGlance[]): void {
    if (this.#terminal === undefined) this.#plain(rows);
    else this.#redraw(this.#terminal, rows);
  }

  /** A sentence that stays. */
  say(text: string): void {
    this.#erase();
    this.#stream.write(`${text}\n`);
  }

  /** Leaves the last picture standing. */
  end(): void {
    this.#drawn = 0;
  }

  #plain(rows: readonly OperationGlance[]): void {
    const now = performance.now();
    if (now - this.#lastAt < plainEveryMs) return;
    const line = summary(rows);
    if (line === this.#lastLine) return;
    this.#lastAt = now;
    this.#lastLine = line;
    this.#stream.write(`${line}\n`);
  }

  #redraw(terminal: WriteStream, rows: readonly OperationGlance[]): void {
    const counts = countStates(rows);
    const total = Math.max(1, this.#expected, rows.length);
    const done = rows.filter(({ state }) => isResolved(state)).length;
    const filled = Math.round((done / total) * barWidth);
    const bar = `${pc.green("█".repeat(filled))}${pc.dim("░".repeat(barWidth - filled))} ${done}/${total}`;
    const lines = states.map((state) => {
      const count = counts[state] ?? 0;
      const text = `  ${state.padEnd(16)}${String(count).padStart(6)}`;
      return count === 0 ? pc.dim(text) : colours[state](text);
    });
    const picture = `${[bar, ...lines].join("\n")}\n`;
    if (this.#drawn > 0 && picture === this.#lastLine) return;
    this.#erase();
    terminal.write(picture);
    this.#lastLine = picture;
    this.#drawn = lines.length + 1;
  }

  #erase(): void {
    if (this.#terminal === undefined || this.#drawn === 0) return;
    moveCursor(this.#terminal, 0, -this.#drawn);
    clearScreenDown(this.#terminal);
    this.#drawn = 0;
  }
}

function summary(rows: readonly OperationGlance[]): string {
  const counts = countStates(rows);
  const parts = states.flatMap((state) => (counts[state] === undefined ? [] : [`${state} ${counts[state]}`]));
  return `${rows.length} operations: ${parts.join(", ") || "none yet"}`;
}
