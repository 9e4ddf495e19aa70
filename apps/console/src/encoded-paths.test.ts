import { request } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TestConsole } from "./testing.js";

let at: TestConsole;
beforeAll(async () => {
  at = await TestConsole.start();
});
afterAll(async () => {
  await at.stop();
});

/** The path as it stands on the wire: a URL object would tidy it up. */
function raw(method: string, path: string, headers: Record<string, string> = {}): Promise<number> {
  const { hostname, port } = new URL(at.url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method, path, headers }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode ?? 0));
    });
    sent.on("error", reject);
    sent.end();
  });
}

it.each([
  ["GET", "/%71ueues/api/queues"],
  ["PUT", "/%71ueues/api/queues/submit/pause"],
  ["PUT", "/queues%2fapi/queues/submit/pause"],
  ["PUT", "/que%75es/api/queues/submit/obliterate"],
  ["GET", "/%63onsole/overview"],
  ["GET", "/c%6fnsole/actions"],
  ["GET", "/%61pi/acme/v1/operations"],
])("%s %s: another spelling of a guarded path lets nobody in", async (method, path) => {
  expect([401, 404]).toContain(await raw(method, path, { origin: at.url }));
  expect(await at.queues.queue("submit").isPaused()).toBe(false);
});

it("another spelling needs the page's token, the role and the log all the same", async () => {
  const { cookie } = await at.login("operator");
  const id = "0192f0c0-0000-7000-8000-000000000000";
  expect(await raw("POST", `/%63onsole/acme/operations/${id}/reveal`, { cookie })).toBe(403);
  const viewer = await at.login("viewer");
  const headers = { cookie: viewer.cookie, origin: at.url };
  expect(await raw("PUT", "/%71ueues/api/queues/submit/pause", headers)).toBe(403);
  expect(await raw("PUT", "/%71ueues/api/queues/submit/obliterate", { cookie, origin: at.url })).toBe(405);
});
