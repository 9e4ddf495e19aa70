import { defineConfig } from "vitest/config";

/** The console in a real browser; apart, since it needs Debian's Chromium (`npm run test:browser`). */
export default defineConfig({
  resolve: { conditions: ["source"] },
  ssr: { resolve: { conditions: ["source"] } },
  test: { include: ["tests/src/browser/*.browser.ts"], testTimeout: 120_000, hookTimeout: 120_000, maxWorkers: 1 },
});
