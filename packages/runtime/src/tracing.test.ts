import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-node";
import { describe, expect, it } from "vitest";
import { createLogger } from "./logger.js";
import { inSpan, recordSpan, stopTracing, traceparentOf, withinTrace } from "./tracing.js";
import { traceparentFor, traceRootOf } from "./tracing-ids.js";
import { openTracer } from "./tracing-otel.js";
import { StorySampler, sampledShare } from "./tracing-sampler.js";
import { tracesWanted } from "./tracing-settings.js";

const operation = "019ae7c2-1111-7abc-8def-0123456789ab";
const built = new URL("../dist/index.js", import.meta.url).href;

describe("tracesWanted", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };
  it.each([
    [{}, "no"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, "no"],
    [endpoint, "yes"],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector:4318/v1/traces" }, "yes"],
    [{ OTEL_TRACES_EXPORTER: "otlp" }, "yes"],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: "none" }, "no"],
    [{ ...endpoint, OTEL_SDK_DISABLED: "true" }, "no"],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: "zipkin" }, "unsupported"],
    [{ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "unsupported"],
    [{ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" }, "yes"],
  ] as const)("%j: %s", (env, answer) => {
    expect(tracesWanted(env)).toBe(answer);
  });
});

describe("a row's trace", () => {
  it("is named by its UUID, in either case of letters", () => {
    expect(traceRootOf(operation)).toEqual({ traceId: "019ae7c211117abc8def0123456789ab", spanId: "8def0123456789ab" });
    expect(traceRootOf(operation.toUpperCase())).toEqual(traceRootOf(operation));
    expect(traceparentFor(operation)).toBe("00-019ae7c211117abc8def0123456789ab-8def0123456789ab-01");
  });
  it.each(["", "main", "00000000-0000-0000-0000-000000000000"])("is none for %j", (id) => {
    expect(traceRootOf(id)).toBeUndefined();
  });
});

describe("sampledShare", () => {
  it.each([
    [{}, 1],
    [{ OTEL_TRACES_SAMPLER: "parentbased_always_off" }, 0],
    [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.25" }, 0.25],
    [{ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "7" }, 1],
  ])("%j: %d", (env, share) => {
    expect(sampledShare(env)).toBe(share);
  });
});

describe("without traces", () => {
  it("work is called and its result and error are the caller's", async () => {
    const work = inSpan({ name: "submit", of: operation }, async (span) => {
      span.note({ ms: 1 });
      return 7;
    });
    expect(await work).toBe(7);
    const error = new Error("mine");
    await expect(inSpan({ name: "submit" }, () => Promise.reject(error))).rejects.toBe(error);
    recordSpan({ name: "plan", startedAt: 0 });
    expect(withinTrace(operation, () => 7)).toBe(7);
    expect(traceparentOf(operation)).toBeUndefined();
    await stopTracing(0);
  });

  it("nothing of it is loaded", () => {
    const script = `
      import { createRequire } from "node:module";
      import { createLogger, startTracing } from ${JSON.stringify(built)};
      await startTracing("test", createLogger({ name: "test" }));
      const loaded = Object.keys(createRequire(${JSON.stringify(built)}).cache);
      console.log(loaded.filter((file) => /sdk-trace|exporter-trace/.test(file)).length, loaded.length > 0);`;
    const env = { PATH: process.env.PATH };
    const without = spawnSync(process.execPath, ["--input-type=module", "--eval", script], { env, encoding: "utf8" });
    expect(without.stdout).toBe("0 true\n");
    const wanted = { ...env, OTEL_TRACES_EXPORTER: "otlp" };
    const withTraces = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
      env: wanted,
      encoding: "utf8",
    });
    expect(withTraces.stdout).not.toMatch(/^0 /);
  });
});

/** An exporter that keeps, throws at once, or never answers. */
class TestExporter implements SpanExporter {
  readonly spans: ReadableSpan[] = [];
  readonly #behaviour: "keeps" | "throws" | "hangs";
  constructor(behaviour: "keeps" | "throws" | "hangs") {
    this.#behaviour = behaviour;
  }
  export(spans: ReadableSpan[], done: (result: { code: number }) => void): void {
    if (this.#behaviour === "throws") throw new Error("marker-of-the-exporter");
    if (this.#behaviour === "hangs") return;
    this.spans.push(...spans);
    done({ code: 0 });
  }
  async shutdown(): Promise<void> {
    if (this.#behaviour === "throws") throw new Error("marker-of-the-exporter");
  }
}

function opened(behaviour: "keeps" | "throws" | "hangs") {
  const lines: string[] = [];
  const logger = createLogger({ name: "test", destination: { write: (line) => void lines.push(line) } });
  const exporter = new TestExporter(behaviour);
  return { tracer: openTracer({ process: "test", logger, exporter }), exporter, lines };
}

// The registration is the process's: the first tracer that is opened here stays the registered one.
describe("with traces", () => {
  it("a span below another of the same row is its child; one of another row is linked", async () => {
    const { tracer, exporter } = opened("keeps");
    const other = "019ae7c2-2222-7abc-8def-0123456789ab";
    tracer.record({ name: "plan", of: operation, first: true, startedAt: Date.now(), traceparent: "nonsense" });
    await tracer.inSpan({ name: "reconcile", of: operation }, async () => {
      await tracer.inSpan({ name: "provider.lookup", of: operation, related: [other] }, async () => undefined);
      await tracer.inSpan({ name: "reconcile", of: other }, async () => undefined);
    });
    await tracer.stop(1_000);
    const [plan, lookup, companion, pass] = exporter.spans;
    expect(plan?.spanContext()).toMatchObject(traceRootOf(operation) ?? {});
    expect(plan?.links).toEqual([]);
    expect(pass?.parentSpanContext?.spanId).toBe(plan?.spanContext().spanId);
    expect(lookup?.parentSpanContext?.spanId).toBe(pass?.spanContext().spanId);
    expect(lookup?.links.map((link) => link.context.traceId)).toEqual([traceRootOf(other)?.traceId]);
    expect(companion?.spanContext().traceId).toBe(traceRootOf(other)?.traceId);
    expect(companion?.links.map((link) => link.context.spanId)).toEqual([pass?.spanContext().spanId]);
  });

  it("drops text that is no identifier, and an error's message", async () => {
    const { tracer, exporter } = opened("keeps");
    const start = {
      name: "submit",
      of: operation,
      facts: { tenant: "acme", reason: "Anna <anna@example.com>" },
    } as const;
    await expect(tracer.inSpan(start, () => Promise.reject(new Error("anna@example.com")))).rejects.toThrow();
    await tracer.stop(1_000);
    expect(exporter.spans[0]?.attributes).toEqual({ "countersign.tenant": "acme" });
    expect(exporter.spans[0]?.status).toEqual({ code: 2 });
    expect(exporter.spans[0]?.events).toEqual([]);
  });

  it.each(["throws", "hangs"] as const)(
    "an exporter that %s costs one line, and nobody waits for it",
    async (behaviour) => {
      const { tracer, lines } = opened(behaviour);
      for (let index = 0; index < 2_000; index += 1) {
        expect(await tracer.inSpan({ name: "submit", of: operation }, async () => index)).toBe(index);
      }
      await tracer.stop(50);
      expect(lines.length).toBeLessThanOrEqual(1);
      expect(lines.join("")).not.toContain("marker");
    },
  );
});

describe("StorySampler", () => {
  it("decides by the trace alone, so that every process decides alike", async () => {
    const { ROOT_CONTEXT } = await import("@opentelemetry/api");
    const [one, another] = [new StorySampler(0.5), new StorySampler(0.5)];
    let kept = 0;
    for (let index = 0; index < 1_000; index += 1) {
      const traceId = `019ae7c21111${crypto.randomUUID().replaceAll("-", "").slice(12)}`;
      const { decision } = one.shouldSample(ROOT_CONTEXT, traceId, "submit");
      expect(another.shouldSample(ROOT_CONTEXT, traceId, "reconcile").decision).toBe(decision);
      kept += decision === 2 ? 1 : 0;
    }
    expect(kept).toBeGreaterThan(350);
    expect(kept).toBeLessThan(650);
    expect(one.shouldSample(ROOT_CONTEXT, "0".repeat(31).concat("1"), "getNextJob submit").decision).toBe(0);
  });
});

it("a log on a full disk is counted and ends nothing", () => {
  const script = `
    import { createLogger, loggingFailures } from ${JSON.stringify(built)};
    const logger = createLogger({ name: "test" });
    for (let index = 0; index < 50; index += 1) logger.info({ count: index }, "line");
    setTimeout(() => { logger.info("line"); console.error(loggingFailures() > 0 ? "counted" : "not counted"); }, 50);`;
  const full = openSync("/dev/full", "w");
  try {
    const run = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8",
      timeout: 20_000,
    });
    expect(run.stderr).toBe("counted\n");
    expect(run.status).toBe(0);
  } finally {
    closeSync(full);
  }
});
