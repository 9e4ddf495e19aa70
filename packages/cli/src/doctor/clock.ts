import { type Finding, finding } from "./finding.js";

/** Deliveries are refused beyond five minutes, and API keys of some providers far earlier. */
const failMs = 60_000;
const warnMs = 2_000;

/** How far another clock is ahead of this host's (negative: behind), ms. What decides goes by the database's clock. */
export function clockFinding(check: string, whose: string, aheadMs: number): Finding {
  const apart = Math.abs(aheadMs);
  const side = aheadMs < 0 ? "behind" : "ahead of";
  const what = `the clock of ${whose} is ${(apart / 1_000).toFixed(1)} s ${side} this host's`;
  const remedy = "let both hosts keep time by NTP";
  if (apart > failMs) return finding("fail", check, what, { remedy });
  return apart > warnMs ? finding("warn", check, what, { remedy }) : finding("ok", check, what);
}
