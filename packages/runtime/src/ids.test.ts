import { describe, expect, it } from "vitest";
import { intentKey, newId, operationId, tenantId } from "./ids.js";

describe("ids", () => {
  it.each(["acme", "42", "a_b-c", "a".repeat(63)])("takes the tenant %s", (id) => {
    expect(tenantId.safeParse(id).success).toBe(true);
  });
  it.each(["", "Acme", "acme:eu", "a/b", "-a", "é", "a".repeat(64), "acme\n"])("refuses the tenant %j", (id) => {
    expect(tenantId.safeParse(id).success).toBe(false);
  });
  it.each(["contract:2026/17 v2", "~", "a".repeat(255)])("takes the intent key %s", (key) => {
    expect(intentKey.safeParse(key).success).toBe(true);
  });
  it.each(["", "é", "a\tb", "a\n", "a".repeat(256)])("refuses the intent key %j", (key) => {
    expect(intentKey.safeParse(key).success).toBe(false);
  });
  it("makes ids that its own schema takes, ordered by time", () => {
    const ids = Array.from({ length: 100 }, newId);
    expect(ids.every((id) => operationId.parse(id) === id)).toBe(true);
    expect([...ids].sort()).toEqual(ids);
  });
  it("refuses other ids as operation ids", () => {
    expect(operationId.safeParse("6f1f3e2a-5a0b-4c58-9a3e-2f1b5d0c7e11").success).toBe(false);
  });
});
