import { afterEach, describe, expect, it } from "vitest";
import { HttpTransport } from "../http-call.js";
import type { CallContext } from "../port.js";
import { callContext, ids, payloadOf, prepared } from "../testing/requests.js";
import { closeServers, httpServer } from "../testing/servers.js";
import { WeSign } from "./wesign.js";

const wesign = new WeSign(new HttpTransport({ keepAliveMs: 100 }));
afterEach(closeServers);

const template = prepared(wesign.prepare("SEND", payloadOf({ documents: [], template: { id: "tpl_1" } }), ids));
const withdraw = prepared(wesign.prepare("VOID", { schemaVersion: 1 }, ids));
const finalizeRequest = prepared(wesign.prepare("FINALIZE", { schemaVersion: 1 }, ids));
const record = (status: string) => ({ id: "sr_1", document_id: "doc_1", status });

type Answer = { status?: number; body?: unknown; type?: string; cut?: boolean };

/** Answers by "METHOD path"; what arrived is kept in order. */
async function provider(answers: Record<string, Answer>) {
  const arrivals: string[] = [];
  const server = await httpServer((request, response) => {
    const line = `${request.method} ${request.url}`;
    arrivals.push(line);
    const answer = answers[line];
    if (answer?.cut === true) {
      request.socket.destroy();
      return;
    }
    const body = answer?.body ?? { error: { code: "not_found" } };
    response
      .writeHead(answer === undefined ? 404 : (answer.status ?? 200), {
        "content-type": answer?.type ?? "application/json",
      })
      .end(body instanceof Buffer ? body : JSON.stringify(body));
  });
  return { arrivals, with: (more: Partial<CallContext> = {}) => callContext(server.baseUrl, more) };
}

const instantiate = "POST /v1/templates/tpl_1/instantiate";
const read = "GET /v1/signing-requests/sr_1";
const confirm = "POST /v1/documents/doc_1/confirm";
const discard = "POST /v1/documents/doc_1/discard";
const stagedAnswer = { status: 201, body: record("staged") };

describe("a SEND that is staged though nobody asked for it", () => {
  it("is confirmed as its second step, its draft stored before", async () => {
    const { arrivals, with: call } = await provider({
      [instantiate]: stagedAnswer,
      [confirm]: { body: record("sent") },
    });
    const { call: context, reported } = call();
    expect(await wesign.submit("SEND", template, context)).toMatchObject({
      kind: "accepted",
      ref: "sr_1",
      recordStatus: "sent",
    });
    expect(reported).toEqual([["sr_1", "draft"]]);
    expect(arrivals).toEqual([instantiate, confirm]);
  });

  it("learns its document from its own record where the answer names none", async () => {
    const { arrivals, with: call } = await provider({
      [instantiate]: { status: 201, body: { id: "sr_1", status: "staged" } },
      [read]: { body: record("staged") },
      [confirm]: { body: record("sent") },
    });
    expect(await wesign.submit("SEND", template, call().call)).toMatchObject({ kind: "accepted", ref: "sr_1" });
    expect(arrivals).toEqual([instantiate, read, confirm]);
  });

  it("is ambiguous where the second step was committed and its answer lost; the draft is on record", async () => {
    const { with: call } = await provider({ [instantiate]: stagedAnswer, [confirm]: { cut: true } });
    const { call: context, reported } = call();
    expect(await wesign.submit("SEND", template, context)).toMatchObject({ kind: "ambiguous" });
    expect(reported).toHaveLength(1);
  });

  it.each([
    ["still says staged", { body: record("staged") }, { kind: "queued", ref: "sr_1", recordStatus: "staged" }],
    ["says a word we don't know", { body: record("rendering") }, { kind: "queued", ref: "sr_1" }],
    ["names another request", { body: { ...record("sent"), id: "sr_2" } }, { kind: "ambiguous" }],
    ["names nothing", { body: {} }, { kind: "ambiguous", cause: "no-usable-reference" }],
    ["says 404", { status: 404 }, { kind: "conflict", code: "not_found" }],
    ["says 409", { status: 409, body: { error: { code: "invalid_state" } } }, { kind: "conflict" }],
    ["says 429", { status: 429, body: { error: { code: "rate_limited" } } }, { kind: "declined" }],
    ["says 500", { status: 500 }, { kind: "ambiguous" }],
  ])("is not taken as sent where the answer of the second step %s", async (_name, answer, expected) => {
    const { with: call } = await provider({ [instantiate]: stagedAnswer, [confirm]: answer });
    expect(await wesign.submit("SEND", template, call().call)).toMatchObject(expected);
  });

  it("makes no second call where the draft can't be stored, or no permit is to be had", async () => {
    const { arrivals, with: call } = await provider({ [instantiate]: stagedAnswer });
    const unstored = call({ reportReference: () => Promise.reject(new Error("no database")) });
    expect(await wesign.submit("SEND", template, unstored.call)).toMatchObject({ kind: "queued", ref: "sr_1" });
    const unpermitted = call({ permit: async () => false });
    expect(await wesign.submit("SEND", template, unpermitted.call)).toMatchObject({ kind: "queued", ref: "sr_1" });
    expect(arrivals).toEqual([instantiate, instantiate]);
  });

  it("is continued from its draft without being made again; a repeat answers already_confirmed", async () => {
    const { arrivals, with: call } = await provider({
      [read]: { body: record("staged") },
      [confirm]: { body: { ...record("sent"), already_confirmed: true } },
    });
    const { call: context } = call({ draftRef: "sr_1" });
    expect(await wesign.submit("SEND", template, context)).toMatchObject({ kind: "accepted", ref: "sr_1" });
    expect(arrivals).toEqual([read, confirm]);
  });

  it("is sent by nothing where a continued step can't leave, or its draft is unknown", async () => {
    const known = await provider({ [read]: { body: record("staged") } });
    const unpermitted = known.with({ draftRef: "sr_1", permit: async () => false });
    expect(await wesign.submit("SEND", template, unpermitted.call)).toEqual({ kind: "not-sent", cause: "no-permit" });
    const unknown = await provider({});
    expect(await wesign.submit("SEND", template, unknown.with({ draftRef: "sr_1" }).call)).toMatchObject({
      kind: "conflict",
      code: "not_found",
    });
    expect([...known.arrivals, ...unknown.arrivals]).toEqual([read, read, "POST /v1/documents/sr_1/confirm"]);
  });

  it("is not confirmed twice where its record says that it went out, nor where it was discarded", async () => {
    const sent = await provider({ [read]: { body: record("viewed") } });
    expect(await wesign.submit("SEND", template, sent.with({ draftRef: "sr_1" }).call)).toMatchObject({
      kind: "accepted",
      recordStatus: "viewed",
    });
    const gone = await provider({ [read]: { body: record("discarded") } });
    expect(await wesign.submit("SEND", template, gone.with({ draftRef: "sr_1" }).call)).toMatchObject({
      kind: "conflict",
    });
    expect([...sent.arrivals, ...gone.arrivals]).toEqual([read, read]);
  });
});

describe("VOID of a staged document", () => {
  const staged = { targetRef: "sr_1", targetStatus: "staged" } as const;
  it.each([
    [
      "discards it",
      { body: { ...record("discarded"), discarded: true } },
      { kind: "accepted", recordStatus: "discarded" },
    ],
    ["repeated", { body: { ...record("discarded"), already_discarded: true } }, { kind: "accepted" }],
    ["gone", { status: 404, body: { error: { code: "not_found" } } }, { kind: "conflict", code: "not_found" }],
    ["confirmed meanwhile", { status: 409, body: { error: { code: "invalid_state" } } }, { kind: "conflict" }],
    ["answer lost", { cut: true }, { kind: "ambiguous" }],
  ] as const)("%s", async (_name, answer, expected) => {
    const { arrivals, with: call } = await provider({ [read]: { body: record("staged") }, [discard]: answer });
    expect(await wesign.submit("VOID", withdraw, call(staged).call)).toMatchObject(expected);
    expect(arrivals).toEqual([read, discard]);
  });

  it("of a document without signers goes by its own id", async () => {
    const { arrivals, with: call } = await provider({
      "POST /v1/documents/doc_9/discard": { body: { id: "doc_9", discarded: true } },
    });
    const { call: context } = call({ ...staged, targetRef: "doc_9" });
    expect(await wesign.submit("VOID", withdraw, context)).toMatchObject({ kind: "accepted" });
    expect(arrivals.at(-1)).toBe("POST /v1/documents/doc_9/discard");
  });
});

describe("FINALIZE", () => {
  const sealed = "GET /v1/signing-requests/sr_1/document";
  const pdf = Buffer.from("%PDF-1.7 sealed");
  const complete = { [read]: { body: record("completed") } };
  const archive = async (bytes: Uint8Array) => `sha-of-${bytes.byteLength}`;

  it("reads the completed request, fetches the sealed document and archives it", async () => {
    const { arrivals, with: call } = await provider({ ...complete, [sealed]: { body: pdf, type: "application/pdf" } });
    const { call: context } = call({ targetRef: "sr_1", archive });
    expect(await wesign.submit("FINALIZE", finalizeRequest, context)).toEqual({
      kind: "accepted",
      ref: "sr_1",
      recordStatus: "completed",
      httpStatus: 200,
      archivedSha256: `sha-of-${pdf.byteLength}`,
      archivedBytes: pdf.byteLength,
    });
    expect(arrivals).toEqual([read, sealed]);
  });

  it.each([
    ["sent", { kind: "not-yet", code: "sent" }],
    ["signed", { kind: "not-yet", code: "signed" }],
    ["declined", { kind: "conflict", code: "target-declined" }],
    ["withdrawn", { kind: "conflict", code: "target-withdrawn" }],
    ["expired", { kind: "conflict", code: "target-expired" }],
    ["sealing", { kind: "ambiguous", cause: "unknown-status" }],
  ])("of a request that is %s fetches nothing", async (status, expected) => {
    const { arrivals, with: call } = await provider({ [read]: { body: record(status) } });
    const { call: context } = call({ targetRef: "sr_1", archive });
    expect(await wesign.submit("FINALIZE", finalizeRequest, context)).toMatchObject(expected);
    expect(arrivals).toEqual([read]);
  });

  it.each([
    ["no PDF", { body: Buffer.from("<html>"), type: "application/pdf" }, "sealed-document-unusable"],
    ["a page", { body: pdf, type: "text/html" }, "sealed-document-unusable"],
    ["an error", { status: 503, body: {} }, "sealed-document-refused"],
    ["not there yet", { status: 409, body: { error: { code: "invalid_state" } } }, "sealed-document-refused"],
    ["cut", { cut: true }, "sealed-document-not-read"],
  ])("archives nothing where the document is %s", async (_name, answer, cause) => {
    let archived = 0;
    const { with: call } = await provider({ ...complete, [sealed]: answer });
    const { call: context } = call({
      targetRef: "sr_1",
      archive: async () => {
        archived += 1;
        return "x";
      },
    });
    expect(await wesign.submit("FINALIZE", finalizeRequest, context)).toMatchObject({ kind: "ambiguous", cause });
    expect(archived).toBe(0);
  });

  it("is not done where the archive can't take it", async () => {
    const { with: call } = await provider({ ...complete, [sealed]: { body: pdf, type: "application/pdf" } });
    const { call: context } = call({ targetRef: "sr_1", archive: () => Promise.reject(new Error("full")) });
    const unavailable = { kind: "not-yet", code: "archive-unavailable" };
    expect(await wesign.submit("FINALIZE", finalizeRequest, context)).toMatchObject(unavailable);
    const without = call({ targetRef: "sr_1" });
    expect(await wesign.submit("FINALIZE", finalizeRequest, without.call)).toMatchObject(unavailable);
  });

  it("is declined where either read is rate-limited", async () => {
    const limited = { status: 429, body: { error: { code: "rate_limited" } } };
    for (const answers of [{ [read]: limited }, { ...complete, [sealed]: limited }]) {
      const { with: call } = await provider(answers);
      const { call: context } = call({ targetRef: "sr_1", archive });
      expect(await wesign.submit("FINALIZE", finalizeRequest, context)).toMatchObject({ kind: "declined" });
    }
  });

  it.each([
    ["lost", { cut: true }],
    ["a page", { body: Buffer.from("<html>"), type: "text/html" }],
    ["of another request", { body: { ...record("completed"), id: "sr_2" } }],
  ])("is ambiguous where the record is %s, and fetches nothing", async (_name, answer) => {
    const { arrivals, with: call } = await provider({ [read]: answer });
    const { call: context } = call({ targetRef: "sr_1", archive });
    expect(await wesign.submit("FINALIZE", finalizeRequest, context)).toMatchObject({ kind: "ambiguous" });
    expect(arrivals).toEqual([read]);
  });
});
