import getPort from "get-port";
import { PortTakenError } from "./errors.js";

const PORT_ATTEMPTS = 5;

/** A TCP port free on 127.0.0.1 now, not handed out again by this process. Another process may still take it first. */
export function freePort(): Promise<number> {
  return getPort({ host: "127.0.0.1", reserve: true });
}

/** Starts something on the wanted port, or else on a free one, trying others when one is taken in between. */
export async function startOnPort<T>(wanted: number | undefined, start: (port: number) => Promise<T>): Promise<T> {
  if (wanted !== undefined) return start(wanted);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (!(error instanceof PortTakenError) || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}
