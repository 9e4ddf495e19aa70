import type { ReactNode } from "react";
import { adviceOn } from "../advice.js";
import { ApiError } from "../api.js";
import { spoken } from "../words.js";

/** What went wrong, the fields that it is about, and what to do. */
export function Problem({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  const problem = error instanceof ApiError ? error.problem : {};
  const advice = error instanceof ApiError ? adviceOn(error.status, problem) : "";
  return (
    <div className="problem" role="alert">
      <strong>{error instanceof Error ? error.message : "Something went wrong"}</strong>
      {problem.detail === undefined ? null : <div>{problem.detail}</div>}
      {problem.errors?.map(({ field, message }) => (
        <div key={field}>
          <code>{field}</code> {message}
        </div>
      ))}
      {advice === "" ? null : <div>{advice}</div>}
    </div>
  );
}

/** A table that scrolls inside itself. */
export function Table({ head, children, testId }: { head: readonly string[]; children: ReactNode; testId?: string }) {
  return (
    <div className="scroll" {...(testId === undefined ? {} : { "data-testid": testId })}>
      <table>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

const tone: Record<string, string> = {
  CONFIRMED: "good",
  APPLIED: "good",
  UNKNOWN: "warn",
  RECONCILING: "warn",
  NEEDS_REVIEW: "bad",
  TERMINAL_FAILED: "bad",
  QUARANTINED: "bad",
  DEAD: "bad",
};

export const State = ({ of }: { of: string }) => <span className={`tag ${tone[of] ?? ""}`}>{spoken(of)}</span>;

/** Says that a list came, and is empty. */
export function NoRows({ of, columns }: { of: readonly unknown[] | undefined; columns: number }) {
  if (of === undefined || of.length > 0) return null;
  return (
    <tr>
      <td colSpan={columns} className="dim">
        None.
      </td>
    </tr>
  );
}

/** Turns to older rows, and back to the first page. */
export function Turn(props: {
  cursor: string | undefined;
  next: string | null | undefined;
  to: (cursor: string | undefined) => void;
}) {
  const { cursor, next, to } = props;
  if (cursor === undefined && (next === null || next === undefined)) return null;
  return (
    <div className="row">
      {cursor === undefined ? null : (
        <button type="button" onClick={() => to(undefined)}>
          First page
        </button>
      )}
      {next === null || next === undefined ? null : (
        <button type="button" onClick={() => to(next)}>
          Next page
        </button>
      )}
    </div>
  );
}
