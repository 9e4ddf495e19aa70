import { postgresDocumentStore } from "@countersign/ledger";
import { plainPdf } from "@countersign/simulator";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OtlpReceiver, type ReceivedSpan } from "./otlp-receiver.js";
import { ProducerScene, patientMs } from "./producer-scene.js";
import { until } from "./real-processes.js";

const traceOf = (id: string): string => id.replaceAll("-", "");
const rootOf = (id: string): string => traceOf(id).slice(16);

const markers = {
  address: "marker-address@example.com",
  name: "Marker-Signer-Name",
  note: "marker-metadata-value",
  text: "marker-document-text",
  file: "marker-document-name.pdf",
  intent: "marker-intent-key",
};
const caller = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };

function only(trace: ReadonlyMap<string, ReceivedSpan[]>, name: string): ReceivedSpan {
  const [span, ...more] = trace.get(name) ?? [];
  if (span === undefined || more.length > 0)
    throw new Error(`${more.length + 1} spans of ${name} in ${[...trace.keys()]}`);
  return span;
}

describe("with a receiver that answers", () => {
  let receiver: OtlpReceiver;
  let scene: ProducerScene;
  let sent = "";
  let doubtful = "";

  beforeAll(async () => {
    receiver = await OtlpReceiver.start();
    scene = await ProducerScene.start({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: "100" });
    const documents = postgresDocumentStore(scene.fleet.scene.ledger);
    const sha256 = await documents.put("acme", Buffer.from(plainPdf([markers.text])));
    const payload = {
      signers: [{ email: markers.address, name: markers.name, role: "customer", order: 1 }],
      metadata: { note: markers.note },
      documents: [{ sha256, fileName: markers.file }],
    };
    sent = await scene.send({
      key: `${markers.intent}-1`,
      payload,
      traceparent: `00-${caller.traceId}-${caller.spanId}-01`,
    });
    await scene.fleet.allIn([sent], "CONFIRMED");
    scene.fleet.scene.simulator.script({ kind: "lost-response" });
    doubtful = await scene.send({ key: `${markers.intent}-2`, payload });
    await scene.fleet.allIn([doubtful], "CONFIRMED");
    scene.fleet.scene.simulator.advance(scene.reference(sent), "viewed");
    await until(
      async () => [sent, doubtful].map((id) => [...receiver.trace(traceOf(id)).keys()]),
      ([first = [], second = []]) =>
        ["plan", "submit", "provider.call", "webhook.apply"].every((name) => first.includes(name)) &&
        second.includes("reconcile"),
    );
    // What was still queued in the processes is sent by their end.
    await Promise.all(scene.fleet.processes.map((each) => each.kill("SIGTERM")));
  }, patientMs);
  afterAll(async () => {
    await scene.stop();
    await receiver.stop();
  });

  it("a SEND is one trace, from the producer's request to the webhook's application", () => {
    const trace = receiver.trace(traceOf(sent));
    const plan = only(trace, "plan");
    expect(plan).toMatchObject({ service: "countersign-enqueuer", spanId: rootOf(sent), parentSpanId: "" });
    expect(plan.links).toMatchObject([caller]);
    expect(only(trace, "addBulk submit").parentSpanId).toBe(plan.spanId);
    const submit = only(trace, "submit");
    // The due loop may have handed it over as well; that job found it claimed.
    const jobs = trace.get("process submit") ?? [];
    expect(jobs.map((job) => job.spanId)).toContain(submit.parentSpanId);
    for (const job of jobs)
      expect(job).toMatchObject({ service: "countersign-submit-worker", parentSpanId: plan.spanId });
    expect(submit.attributes).toMatchObject({
      "countersign.tenant": "acme",
      "countersign.operation": sent,
      "countersign.attempt": 1,
      "countersign.action": "SEND",
      "countersign.connection": "main",
      "countersign.outcome": "accepted",
      "countersign.state": "CONFIRMED",
    });
    const call = only(trace, "provider.call");
    expect(call.parentSpanId).toBe(submit.spanId);
    expect(call.attributes).toMatchObject({ "countersign.outcome": "accepted", "http.response.status_code": 201 });
  });

  it("an UNKNOWN and the look that settled it stand in the trace of the attempt", () => {
    const trace = receiver.trace(traceOf(doubtful));
    expect(only(trace, "submit").attributes).toMatchObject({ "countersign.state": "UNKNOWN" });
    expect(only(trace, "provider.call").attributes).toMatchObject({ "countersign.outcome": "ambiguous" });
    const reconciled = trace.get("reconcile") ?? [];
    const settled = reconciled.find((span) => span.attributes["countersign.state"] === "CONFIRMED");
    expect(settled).toMatchObject({ service: "countersign-reconcile-worker" });
    const jobs = (trace.get("process reconcile") ?? []).map((span) => span.spanId);
    expect(jobs).toContain(settled?.parentSpanId);
    for (const look of trace.get("provider.lookup") ?? []) {
      expect(reconciled.map((span) => span.spanId)).toContain(look.parentSpanId);
    }
  });

  it("an event is linked from the operation's trace to its own", () => {
    const applied = receiver.trace(traceOf(sent)).get("webhook.apply") ?? [];
    expect(applied.length).toBeGreaterThan(0);
    for (const span of applied) {
      const event = String(span.attributes["countersign.event"]);
      const received = only(receiver.trace(traceOf(event)), "webhook.receive");
      expect(received).toMatchObject({ service: "countersign-webhook-ingress", spanId: rootOf(event) });
      const job = (receiver.trace(traceOf(event)).get("process webhook-apply") ?? []).map(({ spanId }) => spanId);
      const linked = span.links.map(({ spanId }) => spanId);
      expect(linked).toContain(received.spanId);
      expect(linked.some((spanId) => job.includes(spanId))).toBe(true);
    }
  });

  it("nothing is sent but ids, codes and numbers, and nothing of an idle process", () => {
    const everything = receiver.bodies.join("\n");
    const references = [sent, doubtful].map((id) => scene.reference(id));
    const hidden = [...Object.values(markers), ...references, "wsk_test", scene.fleet.scene.simulator.url];
    for (const marker of hidden) expect(everything, marker).not.toContain(marker);
    expect(receiver.spans.flatMap((span) => span.events)).toEqual([]);
    const names = new Set(receiver.spans.map((span) => span.name));
    for (const name of names) {
      expect(name).toMatch(
        /^(plan|submit|provider\.call|reconcile|provider\.lookup|webhook\.receive|webhook\.apply|(process|addBulk) [a-z-]+)$/,
      );
    }
    const known = /^(countersign\.[a-z]+|http\.response\.status_code|bullmq\.(queue|job)\.[a-z.]+)$/;
    for (const span of receiver.spans) {
      for (const name of Object.keys(span.attributes)) expect(name).toMatch(known);
    }
  });

  it("every operation's job carries its trace and nothing else", async () => {
    const jobs = await scene.fleet.queues.queue("submit").getJobs(["completed"]);
    expect(jobs.map((job) => job.opts.telemetry?.metadata)).toContain(
      JSON.stringify({ traceparent: `00-${traceOf(sent)}-${rootOf(sent)}-01` }),
    );
  });
});

describe.each([
  ["hangs", { answers: false }],
  ["is not there", undefined],
] as const)("with a receiver that %s", (_, options) => {
  it(
    "operations are confirmed, and every process stops in time with one line about it",
    async () => {
      const receiver = options === undefined ? undefined : await OtlpReceiver.start(options);
      const url = receiver?.url ?? "http://127.0.0.1:1";
      const scene = await ProducerScene.start({
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_BSP_SCHEDULE_DELAY: "50",
        OTEL_BSP_EXPORT_TIMEOUT: "300",
        OTEL_BSP_MAX_QUEUE_SIZE: "4",
      });
      try {
        const ids = [await scene.send({ key: "one" })];
        scene.fleet.scene.simulator.script({ kind: "lost-response" });
        ids.push(await scene.send({ key: "two" }));
        for (let index = 0; index < 10; index += 1) ids.push(await scene.send({ key: `more-${index}` }));
        await scene.fleet.allIn(ids, "CONFIRMED");
        const submit = scene.fleet.processes.find(({ output }) => output.includes('"name":"submit-worker"'));
        await until(
          async () => submit?.output ?? "",
          (output) => output.includes("traces are not delivered"),
        );
        await Promise.all(
          scene.fleet.processes.map(async (each) => expect(await each.kill("SIGTERM"), each.output).toBe(0)),
        );
        for (const { output } of scene.fleet.processes) {
          expect(output.split("traces are not delivered").length).toBeLessThanOrEqual(2);
        }
      } finally {
        await scene.stop();
        await receiver?.stop();
      }
    },
    patientMs,
  );
});
