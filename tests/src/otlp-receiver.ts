import { createServer, type Server } from "node:http";
import { z } from "zod";

const attributeValue = z.object({
  stringValue: z.string().optional(),
  intValue: z.union([z.number(), z.string()]).optional(),
  doubleValue: z.number().optional(),
  boolValue: z.boolean().optional(),
});
const attributes = z.array(z.object({ key: z.string(), value: attributeValue })).default([]);
const spanSchema = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().default(""),
  name: z.string(),
  kind: z.number(),
  attributes,
  events: z.array(z.unknown()).default([]),
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })).default([]),
});
const exportRequest = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes }),
      scopeSpans: z.array(z.object({ spans: z.array(spanSchema) })),
    }),
  ),
});

export type AttributeValue = string | number | boolean | undefined;

/** A span as it arrived. */
export interface ReceivedSpan extends Omit<z.output<typeof spanSchema>, "attributes"> {
  readonly service: AttributeValue;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
}

/** A receiver of OTLP over HTTP in JSON that keeps what it gets, or never answers. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  /** Every body as it came. */
  readonly bodies: string[] = [];
  readonly #server: Server;
  readonly #port: number;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.#port = port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  static async start(options: { answers: boolean } = { answers: true }): Promise<OtlpReceiver> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const receiver = new OtlpReceiver(server, typeof address === "object" ? (address?.port ?? 0) : 0);
    server.on("request", (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        receiver.#keep(Buffer.concat(chunks).toString());
        if (options.answers) response.writeHead(200, { "content-type": "application/json" }).end("{}");
      });
    });
    return receiver;
  }

  /** The spans of one trace, by name. */
  trace(traceId: string): ReadonlyMap<string, ReceivedSpan[]> {
    const byName = new Map<string, ReceivedSpan[]>();
    for (const span of this.spans) {
      if (span.traceId === traceId) byName.set(span.name, [...(byName.get(span.name) ?? []), span]);
    }
    return byName;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #keep(body: string): void {
    this.bodies.push(body);
    for (const { resource, scopeSpans } of exportRequest.parse(JSON.parse(body)).resourceSpans) {
      const service = plain(resource.attributes)["service.name"];
      for (const span of scopeSpans.flatMap((each) => each.spans)) {
        this.spans.push({ ...span, service, attributes: plain(span.attributes) });
      }
    }
  }
}

function plain(list: z.output<typeof attributes>): Record<string, AttributeValue> {
  return Object.fromEntries(
    list.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => [
      key,
      stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue) : Number(intValue)),
    ]),
  );
}
