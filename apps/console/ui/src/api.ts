import type { Problem } from "@countersign/client";
import type { Session } from "../../src/contract.js";

/** An error answer, in the words of the server. */
export class ApiError extends Error {
  readonly status: number;
  readonly problem: Partial<Problem>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.title ?? `The server answered ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

let csrf = "";

/** Remembers what requests that change something must carry. */
export function setSession(session: Session | undefined): void {
  csrf = session?.csrf ?? "";
}

/** Throws {@link ApiError}, with status 0 where nobody answered. */
export async function call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
  const headers: Record<string, string> = method === "GET" ? {} : { "x-countersign-csrf": csrf };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  } catch {
    throw new ApiError(0, { title: "The console does not answer: is it running?" });
  }
  const text = await response.text();
  if (!response.ok) throw new ApiError(response.status, problemOf(text));
  // An answer without a body is null.
  return JSON.parse(text === "" ? "null" : text);
}

function problemOf(text: string): Partial<Problem> {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

export const query = (values: Record<string, string | undefined>): string => {
  const given = Object.entries(values).filter(
    (each): each is [string, string] => each[1] !== undefined && each[1] !== "",
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
};
