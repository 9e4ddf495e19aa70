import { createLogger } from "@countersign/runtime";
import { expect, it } from "vitest";
import { RefusalLog } from "./refusal-log.js";

it("the first refusal is said at once, a flood is counted, each endpoint and reason on its own", () => {
  const lines: string[] = [];
  let now = 0;
  const logger = createLogger({ name: "test", destination: { write: (line) => lines.push(line) } });
  const log = new RefusalLog(logger, 10_000, () => now);
  const endpoint = (endpointId: string) => ({
    endpointId,
    tenantId: "acme",
    connectionId: "main",
    provider: "wesign",
    scheme: "elchi",
    gzip: null,
    secrets: [],
  });
  for (let n = 0; n < 1_000; n += 1) log.refused(endpoint("we_1"), "no-matching-signature");
  log.refused(endpoint("we_1"), "missing-header");
  log.refused(endpoint("we_2"), "no-matching-signature");
  now = 10_000;
  log.refused(endpoint("we_1"), "no-matching-signature");
  const said = lines.map((line) => JSON.parse(line)).map(({ reason, count }) => ({ reason, count }));
  expect(said).toEqual([
    { reason: "no-matching-signature", count: 1 },
    { reason: "missing-header", count: 1 },
    { reason: "no-matching-signature", count: 1 },
    { reason: "no-matching-signature", count: 1_000 },
  ]);
  expect(lines.join("")).not.toContain("we_1");
});
