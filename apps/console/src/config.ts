import { commonConfig, integerSetting, portSetting, windows } from "@countersign/runtime";
import { z } from "zod";

/** What the console reads from its environment. */
export const consoleConfig = {
  ...commonConfig,
  PORT: portSetting(8_790),
  DATABASE_POOL: integerSetting("connections", { min: 1, max: 100, default: 10 }),
  /** `none` trusts everybody who reaches the address, and is refused off loopback. */
  CONSOLE_AUTH: z.enum(["token", "none"]).default("token").describe("token, or none on loopback only (default token)"),
  /** After so many hours everybody logs in again. */
  CONSOLE_SESSION_HOURS: integerSetting("hours", { min: 1, max: 168, default: 12 }),
  /** The cookie is sent over https only; set where TLS ends before the console. */
  CONSOLE_SECURE_COOKIE: z.enum(["true", "false"]).default("false").describe("true behind https (default false)"),
  QUIESCENCE_MS: windows.QUIESCENCE_MS,
  GRACE_MS: integerSetting("milliseconds", { min: 100, max: 600_000, default: 10_000 }),
} as const;
