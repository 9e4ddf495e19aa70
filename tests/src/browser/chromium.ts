import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Starts Debian's Chromium, which asks nobody but us. Throws with the remedy where there is none. */
export async function startChromium(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) {
    throw new Error(`${executablePath} is missing: apt-get install chromium, or set CHROMIUM to a browser's path`);
  }
  return await chromium.launch({
    executablePath,
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}
