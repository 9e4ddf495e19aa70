import { expect, it } from "vitest";
import { adviceOn } from "./advice.js";

it("a known refusal says what to do about it, whatever its status", () => {
  expect(adviceOn(409, { type: "/problems/evidence-moved" })).toContain("decide on what it says now");
  expect(adviceOn(409, { type: "/problems/too-early" })).toContain("Wait");
});

it("every other refusal is advised on by its status", () => {
  expect(adviceOn(409, { type: "/problems/new-one" })).toBe("It has changed since you read it. Read the page again.");
  expect(adviceOn(401, {})).toBe("Log in again.");
});

it.each([0, 500, 502, 504])("status %i never invites to do it twice", (status) => {
  expect(adviceOn(status, {})).toContain("before you do it again");
});

it("nothing is invented for what is not known", () => {
  expect(adviceOn(418, { type: "about:blank" })).toBe("");
});
