import { once } from "node:events";
import { connect } from "node:net";
import { type Crash, type CrashPoint, type CrashStage, crashAt, figure } from "./crash-stage.js";
import type { FleetProcess } from "./real-processes.js";
import { acknowledged, type SentEvent } from "./webhook-scene.js";

/** Its pool of one keeps a delivery's whole conversation on one connection, in order; it knows nothing beforehand. */
const victimSettings = { DATABASE_POOL: "1", WEBHOOK_ENDPOINT_CACHE_MS: "0" };

/** The sender goes on as its contract says: the same event, freshly signed, until a 2xx. */
async function retry({ scene, ingress }: CrashStage, event: SentEvent, answered: number | undefined): Promise<void> {
  if (!acknowledged(answered)) await scene.deliverUntilAcknowledged(ingress, event);
}

const half = (text: string): string => text.slice(0, Math.floor(text.length / 2));

/** How much of a delivery has been written when the ingress is killed. */
export const partsOfDelivery: Readonly<Record<string, (request: { head: string; body: string }) => string>> = {
  "after the first byte": ({ head }) => head.slice(0, 1),
  "in the head": ({ head }) => half(head),
  "after the head": ({ head }) => head,
  "in the body": ({ head, body }) => head + half(body),
  "before the last byte": ({ head, body }) => head + body.slice(0, -1),
  "after the last byte": ({ head, body }) => head + body,
};

/** An ingress killed when one of the {@link partsOfDelivery} has arrived. */
export async function crashWhileReceiving(stage: CrashStage, name: string): Promise<CrashPoint> {
  const { scene } = stage;
  const victim = await scene.ingress(victimSettings);
  const event = scene.nextEvent();
  const socket = connect(victim.port, "127.0.0.1");
  await once(socket, "connect");
  let answer = "";
  socket.on("data", (chunk: Buffer) => {
    answer += chunk.toString("latin1");
  });
  socket.on("error", () => undefined); // a reset is what a killed server looks like; "close" follows
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const bytes = partsOfDelivery[name]?.(scene.request(event)) ?? "";
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  // A question on another connection, answered, shows that the process has been round its sockets since.
  await (await fetch(`${victim.url}/healthz`)).arrayBuffer();
  await victim.kill("SIGKILL");
  await closed;
  const status = /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1];
  const answered = status === undefined ? undefined : Number(status);
  const row = await scene.inbox(event);
  await retry(stage, event, answered);
  return { series: "sender to ingress", step: name, event, answered, row };
}

/** Whose conversation with the ingress is stopped, and how it is known that it came to its end. */
const conversations = {
  sender: {
    series: "ingress to sender",
    from: () => true,
    done: async (_: FleetProcess, sent: Promise<unknown>) => void (await sent),
  },
  postgres: {
    series: "ingress to PostgreSQL",
    from: (_: Buffer, direction: string) => direction === "toTarget",
    done: async (_: FleetProcess, sent: Promise<unknown>) => void (await sent),
  },
  redis: {
    series: "ingress to Redis",
    from: (frame: Buffer, direction: string) => direction === "toTarget" && frame.includes("webhook-apply"),
    done: (victim: FleetProcess) => figure(victim, /countersign_webhook_hand_off_total\{[^}]*outcome="added"[^}]*\} 1/),
  },
} as const;

export type IngressConversation = keyof typeof conversations;

/** An ingress killed at the k-th step of a conversation, or as soon as that has come to its end. */
export async function crashWhileStoring(
  stage: CrashStage,
  conversation: IngressConversation,
  at: number,
): Promise<Crash> {
  const { scene, proxies } = stage;
  const { series, from, done } = conversations[conversation];
  const proxy = proxies[conversation];
  const { fleet } = scene;
  const victim = await scene.ingress({
    ...victimSettings,
    ...(conversation === "postgres" ? { DATABASE_URL: proxy.through(fleet.scene.databaseUrl) } : {}),
    ...(conversation === "redis" ? { REDIS_URL: proxy.through(fleet.redis.url) } : {}),
  });
  if (conversation === "sender") proxy.aim(victim.port);
  const event = scene.nextEvent();
  const stopped = proxy.arm({ from, at, grain: stage.grain });
  const sent = scene.deliver(conversation === "sender" ? { url: `http://127.0.0.1:${proxy.port}` } : victim, event);
  const step = await Promise.race([stopped, done(victim, sent)]);
  await victim.kill("SIGKILL");
  proxy.disarm();
  const answered = await sent;
  const row = await scene.inbox(event);
  await retry(stage, event, answered);
  return crashAt(step, { series, event, answered, row });
}
