import { expect, it } from "vitest";
import { elsewhere } from "./tenant-path.js";

it.each([
  ["/", "bravo", "/?tenant=bravo"],
  ["/actions", "", "/actions"],
  ["/t/acme/reviews", "bravo", "/t/bravo/reviews"],
  ["/t/acme/operations/0192", "bravo", "/t/bravo/operations"],
  ["/t/acme/inbox/0192", "bravo", "/t/bravo/quarantine"],
])("from %s to tenant '%s' leads to %s", (path, tenant, to) => {
  expect(elsewhere(path, tenant)).toBe(to);
});
