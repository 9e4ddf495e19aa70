import { expect, it } from "vitest";
import { rateLimitOf } from "./rate-limit.js";

const now = 1_800_000_000_000;

it.each([
  [
    { "ratelimit-remaining": "3", "ratelimit-reset": "12" },
    { remaining: 3, resetMs: 12_000 },
  ],
  [
    { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000030" },
    { remaining: 0, resetMs: 30_000 },
  ],
  [
    { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000000" },
    { remaining: 0, resetMs: 0 },
  ],
  [{ "ratelimit-remaining": "3" }, undefined],
  [{ "ratelimit-remaining": "-1", "ratelimit-reset": "5" }, undefined],
  [{ "ratelimit-remaining": "1e3", "ratelimit-reset": "5" }, undefined],
  [{ "ratelimit-remaining": ["1", "2"], "ratelimit-reset": "5" }, undefined],
  [{}, undefined],
])("%j is %j", (headers, expected) => {
  expect(rateLimitOf(headers, now)).toEqual(expected);
});
