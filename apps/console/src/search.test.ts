import { afterAll, beforeAll, expect, it } from "vitest";
import { TestConsole } from "./testing.js";

let at: TestConsole;
beforeAll(async () => {
  at = await TestConsole.start();
});
afterAll(async () => {
  await at.stop();
});

it.each([
  "nobody@example.com",
  "0192f0c0-0000-7000-8000-000000000000",
  "a".repeat(64),
  "wsr_unknown",
  "intent with spaces",
  "\u0000",
])("what nothing has to do with finds nothing: %j", async (text) => {
  const login = await at.login("viewer");
  const answer = await at.call("POST", "/console/acme/search", { login, body: { text } });
  expect([answer.status, answer.body]).toEqual([200, { as: "nothing", data: [], nextCursor: null }]);
});
