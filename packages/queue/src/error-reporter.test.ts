import { describe, expect, it } from "vitest";
import { captureLog } from "./conformance.js";
import { createErrorReporter } from "./error-reporter.js";

describe("createErrorReporter", () => {
  it("logs an error once per interval, by type and code, with how many were left out", () => {
    const { logger, lines } = captureLog();
    let now = 0;
    const report = createErrorReporter(logger, "lost", { everyMs: 1_000, now: () => now });
    const refused = Object.assign(new Error("connect ECONNREFUSED 10.0.0.1"), { code: "ECONNREFUSED" });
    for (let i = 0; i < 500; i += 1) report(refused);
    report(new TypeError("other"));
    now = 1_000;
    report(refused);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { err: { code: "ECONNREFUSED" }, suppressed: 0 },
      { err: { type: "TypeError" }, suppressed: 0 },
      { err: { code: "ECONNREFUSED" }, suppressed: 499 },
    ]);
    expect(lines.join("")).not.toContain("10.0.0.1");
  });
});
