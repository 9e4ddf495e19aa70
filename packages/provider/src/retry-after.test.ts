import { expect, it } from "vitest";
import { RETRY_AFTER_CAP_MS, retryAfterMs } from "./retry-after.js";

const at = Date.parse("2026-11-30T12:00:00Z");

it.each([
  ["60", {}, 60_000],
  [" 60 ", {}, 60_000],
  ["0", {}, undefined],
  ["-5", {}, undefined],
  ["1e3", {}, undefined],
  ["12abc", {}, undefined],
  ["", {}, undefined],
  ["1.5", {}, undefined],
  ["Mon, 30 Nov 2026 12:01:00 GMT", {}, 60_000],
  ["Mon, 30 Nov 2026 11:59:00 GMT", {}, undefined],
  ["2026-11-30T12:01:00Z", {}, undefined],
  // The provider's clock is an hour ahead of ours: its own Date counts.
  ["Mon, 30 Nov 2026 13:00:30 GMT", { date: "Mon, 30 Nov 2026 13:00:00 GMT" }, 30_000],
  ["999999999", {}, RETRY_AFTER_CAP_MS],
])("Retry-After %j is read, ignored or capped", (value, headers, expected) => {
  expect(retryAfterMs({ ...headers, "retry-after": value }, at)).toBe(expected);
});

it("of several values the longest counts, and none is none", () => {
  expect(retryAfterMs({ "retry-after": ["5", "x", "20"] }, at)).toBe(20_000);
  expect(retryAfterMs({}, at)).toBeUndefined();
});
