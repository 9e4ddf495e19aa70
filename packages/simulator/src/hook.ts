import { randomBytes } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { ProviderError } from "./answer.js";

/** One event on its way to one hook. */
export interface Delivery {
  readonly eventId: string;
  readonly type: string;
  readonly body: string;
  attempts: number;
  lastStatus: number | undefined;
  lastAttemptAt: number | undefined;
  state: "waiting" | "delivered" | "abandoned";
  /** Set while the hook is off or an attempt is planned; cancels the planned attempt. */
  cancel: (() => void) | undefined;
}

/** An endpoint of a customer that events are posted to. */
export interface Hook {
  readonly id: string;
  readonly workspace: string;
  readonly url: string;
  secret: string;
  enabled: boolean;
  failuresInRow: number;
  deliveries: Delivery[];
}

export function newSecret(): string {
  return `whsec_${randomBytes(24).toString("base64url")}`;
}

const RESERVED = new BlockList();
for (const [net, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const) {
  RESERVED.addSubnet(net, bits, "ipv4");
}
RESERVED.addAddress("::", "ipv6");
RESERVED.addSubnet("fc00::", 7, "ipv6");
RESERVED.addSubnet("fe80::", 10, "ipv6");
RESERVED.addSubnet("ff00::", 8, "ipv6");

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}

export function isLoopback(address: string): boolean {
  return LOOPBACK.check(address, familyOf(address));
}

/** Whether an event may be posted to this address: not private, not reserved, loopback only where allowed. */
export function mayDial(address: string, allowLoopback: boolean): boolean {
  if (isLoopback(address)) return allowLoopback;
  return !RESERVED.check(address, familyOf(address));
}

/**
 * Checks a hook's URL: https with a host and no credentials, no literal private or reserved address, no `localhost`.
 * With `allowLoopback`, plain http to a loopback host passes too.
 * @throws ProviderError 422 with `code`.
 */
export function checkHookUrl(text: string, allowLoopback: boolean, code: string): string {
  const refuse = (message: string) => new ProviderError(422, code, message);
  if (!URL.canParse(text)) throw refuse("The URL cannot be parsed.");
  const url = new URL(text);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const loopback = host === "localhost" || (isIP(host) !== 0 && isLoopback(host));
  if (url.username !== "" || url.password !== "") throw refuse("The URL must not carry credentials.");
  if (loopback && !allowLoopback) throw refuse("The URL must not point to a loopback address.");
  if (!loopback && isIP(host) !== 0 && !mayDial(host, false)) throw refuse("The URL points to a reserved address.");
  const httpAllowed = loopback && url.protocol === "http:";
  if (url.protocol !== "https:" && !httpAllowed) throw refuse("The URL must use https.");
  return text;
}
