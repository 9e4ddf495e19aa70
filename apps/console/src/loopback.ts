import { isIPv4 } from "node:net";

/** Whether an address to listen on is reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

/** Whether a request's `Host` names this machine: a page elsewhere whose name was bent to 127.0.0.1 names its own. */
export function namesLoopback(hostHeader: string | undefined): boolean {
  const host = (hostHeader ?? "").replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return isLoopback(host);
}
