import { describe, expect, it } from "vitest";
import { createLogger, loggingFailures } from "./logger.js";

const planted = "anna.planted@example.com";

function capture() {
  const lines: string[] = [];
  const logger = createLogger({ name: "test", destination: { write: (line) => lines.push(line) } });
  return { logger, lines, last: (): Record<string, unknown> => JSON.parse(lines.at(-1) ?? "{}") };
}

class VouchedError extends Error {
  override readonly name = "VouchedError";
  readonly code = "E_VOUCHED";
  readonly safeMessage = "set QUEUE to a known name";
}

describe("createLogger", () => {
  it("writes listed fields with the message", () => {
    const { logger, last } = capture();
    logger.info({ tenant: "acme", operation: "0199-op", attempt: 2, state: "UNKNOWN" }, "claimed");
    expect(last()).toMatchObject({ name: "test", level: "info", tenant: "acme", attempt: 2, msg: "claimed" });
  });

  it("drops every field that is not listed, also nested, in arrays and in child bindings", () => {
    const { logger, lines } = capture();
    logger.info({ email: planted, evidence: { code: "x", signer: planted, cause: [{ to: planted }] } }, "nested");
    logger.child({ intentKey: planted, tenant: planted, queue: "submit" }).warn({ body: planted }, "child");
    logger.child({ queue: "submit" }).child({ ip: planted }).info("grandchild");
    logger.setBindings({ token: planted });
    logger.info("bound");
    expect(lines).toHaveLength(4);
    expect(lines.join("")).not.toContain("planted");
    expect(lines.join("")).toContain('"queue":"submit"');
  });

  it("drops text in a listed field that is no identifier", () => {
    const { logger, last } = capture();
    logger.info({ reason: `mail to ${planted} bounced`, code: "ECONNRESET", tenant: "Anna Planted" }, "x");
    expect(last()).toMatchObject({ reason: "[dropped]", code: "ECONNRESET", tenant: "[dropped]" });
  });

  it("cuts credentials, query and fragment off a URL", () => {
    const { logger, last } = capture();
    logger.info({ url: "https://user:pw@sign.example/v1/requests?token=planted#planted" }, "x");
    expect(last().url).toBe("https://sign.example/v1/requests");
    logger.info({ url: "/v1/operations?intentKey=planted" }, "x");
    expect(last().url).toBe("/v1/operations");
  });

  it("reduces an error of a library to type, code and call sites", () => {
    const { logger, lines, last } = capture();
    const error = Object.assign(new TypeError(`no such row ${planted}\n    at planted (planted.ts:1:1)`), {
      code: "23505",
      detail: planted,
      cause: new Error(planted),
    });
    logger.error({ err: error }, "failed");
    expect(last()).toMatchObject({ err: { type: "TypeError", code: "23505", cause: { type: "Error" } } });
    expect(lines.join("")).toMatch(/"stack":\["at /);
    logger.error(error);
    logger.error(error, error.message);
    logger.error({ err: error, req: { headers: planted } }, error.message);
    logger.error(`failed %s`, planted);
    expect(lines.join("")).not.toContain("planted");
  });

  it("passes the text of an error that vouches for it", () => {
    const { logger, lines, last } = capture();
    logger.error({ err: new VouchedError(planted) }, "failed");
    expect(last()).toMatchObject({
      err: { type: "VouchedError", code: "E_VOUCHED", message: "set QUEUE to a known name" },
    });
    expect(lines.join("")).not.toContain("planted");
  });

  it("never throws, whatever is logged and wherever it goes", () => {
    const broken = createLogger({
      name: "test",
      destination: {
        write: () => {
          throw new Error("disk full");
        },
      },
    });
    const before = loggingFailures();
    broken.info("lost");
    const { logger, lines } = capture();
    const circular: Record<string, unknown> = {};
    circular.evidence = circular;
    logger.info(circular, "circular");
    logger.info(
      {
        get tenant(): string {
          throw new Error("hostile");
        },
      },
      "getter",
    );
    logger.error(
      {
        err: {
          get name() {
            throw new Error("hostile");
          },
        },
      },
      "hostile error",
    );
    expect(loggingFailures()).toBe(before + 2);
    expect(lines).toHaveLength(2);
  });
});
