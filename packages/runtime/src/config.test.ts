import { describe, expect, it } from "vitest";
import { ConfigError, loadConfig } from "./config.js";
import { booleanSetting, checkWindows, commonConfig, type Windows, windows } from "./settings.js";

const key = Buffer.alloc(32, 7).toString("base64");
const env = { DATABASE_URL: "postgres://user:hunter2@localhost/ledger", COUNTERSIGN_ENCRYPTION_KEY: key };

function problemsOf(run: () => unknown): ConfigError {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("loadConfig", () => {
  it("fills documented defaults and reads the key as 32 bytes", () => {
    const config = loadConfig(commonConfig, env, { name: "test" });
    expect(config).toMatchObject({ LOG_LEVEL: "info", HOST: "127.0.0.1", PORT: 0, REDIS_URL: undefined });
    expect(config.COUNTERSIGN_ENCRYPTION_KEY).toEqual(Buffer.alloc(32, 7));
  });

  it("takes an empty variable as unset", () => {
    expect(loadConfig(commonConfig, { ...env, REDIS_URL: "", PORT: "" }, { name: "test" })).toMatchObject({
      REDIS_URL: undefined,
      PORT: 0,
    });
  });

  it("names every bad variable, what it must be and the remedy, and never its value", () => {
    const bad = { DATABASE_URL: "mysql://user:hunter2@host/db", COUNTERSIGN_ENCRYPTION_KEY: "hunter2", PORT: "70000" };
    const error = problemsOf(() => loadConfig(commonConfig, bad, { name: "enqueuer" }));
    expect(error.problems.map(({ variable }) => variable).sort()).toEqual([
      "COUNTERSIGN_ENCRYPTION_KEY",
      "DATABASE_URL",
      "PORT",
    ]);
    expect(error.message).toContain("openssl rand -base64 32");
    expect(error.message).toContain("from 0 (any free one) to 65535");
    expect(error.message).not.toContain("hunter2");
    expect(error.safeMessage).toBe(error.message);
  });

  it("says which variable is missing", () => {
    const error = problemsOf(() => loadConfig(commonConfig, { DATABASE_URL: env.DATABASE_URL }, { name: "test" }));
    expect(error.message).toContain("COUNTERSIGN_ENCRYPTION_KEY is missing. Set it to 32 random bytes in base64");
  });

  it("refuses a misspelt COUNTERSIGN_ variable with the name meant", () => {
    const error = problemsOf(() =>
      loadConfig(commonConfig, { ...env, COUNTERSIGN_ENCRYPTON_KEY: key }, { name: "test" }),
    );
    expect(error.message).toContain("Did you mean COUNTERSIGN_ENCRYPTION_KEY?");
    expect(error.message).not.toContain(key);
  });

  it("lets other processes' COUNTERSIGN_ variables be", () => {
    expect(() => loadConfig(commonConfig, { ...env, COUNTERSIGN_DEEP: "1" }, { name: "test" })).not.toThrow();
  });

  it.each([
    ["yes", true],
    ["TRUE", true],
    ["0", false],
    [undefined, true],
  ])("reads the flag %s", (text, expected) => {
    expect(loadConfig({ FLAG: booleanSetting(true) }, { FLAG: text }, { name: "test" }).FLAG).toBe(expected);
  });
});

describe("checkWindows", () => {
  const defaults: Windows = loadConfig(windows, {}, { name: "test" });
  const variables = (values: Windows, slowestCallMs?: number) =>
    problemsOf(() =>
      checkWindows(values, { name: "test", ...(slowestCallMs === undefined ? {} : { slowestCallMs }) }),
    ).problems.map(({ variable }) => variable);

  it("accepts the defaults", () => {
    expect(() => checkWindows(defaults, { name: "test" })).not.toThrow();
  });

  it("refuses quiescence shorter than deadline, slowest call and lookup lag together", () => {
    expect(variables({ ...defaults, QUIESCENCE_MS: 89_999 })).toEqual(["QUIESCENCE_MS"]);
    expect(variables(defaults, 30_001)).toEqual(["QUIESCENCE_MS"]);
  });

  it("refuses a lease that could end inside its own call", () => {
    expect(variables({ ...defaults, LEASE_MS: 35_000 })).toEqual(["LEASE_MS"]);
    expect(() => checkWindows({ ...defaults, LEASE_MS: 35_001 }, { name: "test" })).not.toThrow();
  });
});
