import { describe, expect, it } from "vitest";
import { jobData, jobId } from "./queues.js";

const odd = ["a", "a:b", "b", "42", "", "a/b", '","', "\u{1f4dd}", "\ud800", "x".repeat(300)];

describe("jobId", () => {
  it("never holds a colon, never is all digits, and stays short", () => {
    for (const tenantId of odd) {
      expect(jobId({ tenantId, kind: "operation", subjectId: "42" }, 7)).toMatch(/^j[A-Za-z0-9_-]{43}-g7$/);
    }
  });

  it("is never shared by two different subjects or generations", () => {
    const ids = new Set<string>();
    for (const tenantId of odd) {
      for (const kind of odd) {
        for (const subjectId of odd)
          ids.add(jobId({ tenantId, kind, subjectId }, 0)).add(jobId({ tenantId, kind, subjectId }, 1));
      }
    }
    expect(ids.size).toBe(2 * odd.length ** 3);
  });
});

describe("jobData", () => {
  it("refuses a field that would carry something else into the queue", () => {
    const data = { tenantId: "acme", kind: "operation", subjectId: "1" };
    expect(jobData.safeParse(data).success).toBe(true);
    expect(jobData.safeParse({ ...data, email: "anna@example.com" }).success).toBe(false);
  });
});
