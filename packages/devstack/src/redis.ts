import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ExternalRedisError, PortTakenError, RedisUnavailableError, ServerStartError } from "./errors.js";
import { startOnPort } from "./free-port.js";
import { findOnPath, type RedisBinary, redisEnv } from "./redis-binary.js";
import { cacheFolder, fetchPackage } from "./redis-package.js";
import { ServerProcess } from "./server-process.js";
import { forgetFolder, watchFolder } from "./watchdog.js";

/** How to start Redis. */
export interface RedisOptions {
  /** TCP port on 127.0.0.1. Default: a free one. */
  readonly port?: number;
  /** Keep an append-only file, so that a restart keeps the data. Default true. */
  readonly appendOnly?: boolean;
  /** Folder of the data, which then stays. Default: a temporary one, removed at the end. */
  readonly dataDir?: string;
  /** Where REDIS_URL, PATH, COUNTERSIGN_NO_REDIS and COUNTERSIGN_CACHE_DIR are read. Default `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
}

/** A running Redis or Valkey. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Process id, another one after `restart`; undefined for an external server. */
  readonly pid: number | undefined;
  /** "external": REDIS_URL names it, and it is not ours to stop. "path": a program of this system. "package": fetched. */
  readonly source: "external" | "path" | "package";
  /** Ends it for good and removes temporary data. Does nothing to an external server. May be called twice. */
  stop(): Promise<void>;
  /** Sends a signal (default SIGKILL) and waits for the end where that signal brings one. Throws `ExternalRedisError`. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port, with its data unless `empty`. Throws `ExternalRedisError`. */
  restart(options?: { readonly empty?: boolean }): Promise<void>;
}

const STOP_GRACE_MS = 5000;

class LocalRedis implements RedisServer {
  readonly port: number;
  readonly source: "path" | "package";
  readonly #folder: string;
  readonly #temporary: boolean;
  readonly #start: () => Promise<ServerProcess>;
  #server: ServerProcess;

  constructor(launch: Launch, port: number, server: ServerProcess, start: () => Promise<ServerProcess>) {
    this.port = port;
    this.source = launch.binary.source;
    this.#folder = launch.folder;
    this.#temporary = launch.temporary;
    this.#server = server;
    this.#start = start;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#server.pid;
  }

  async stop(): Promise<void> {
    await this.#server.end("SIGTERM", STOP_GRACE_MS);
    if (this.#temporary) await removeFolder(this.#folder);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#server.kill(signal);
  }

  async restart({ empty = false }: { readonly empty?: boolean } = {}): Promise<void> {
    await this.#server.end("SIGTERM", STOP_GRACE_MS);
    if (empty) {
      await rm(join(this.#folder, "appendonlydir"), { recursive: true, force: true });
      await rm(join(this.#folder, "appendonly.aof"), { force: true }); // the single file of Redis 6
    }
    this.#server = await this.#start();
  }
}

/** What is needed to run the server, again and again. */
interface Launch {
  readonly binary: RedisBinary;
  readonly folder: string;
  readonly temporary: boolean;
  readonly appendOnly: boolean;
}

/**
 * A Redis on 127.0.0.1 without eviction, from the first of: REDIS_URL, `redis-server` or `valkey-server` on the PATH,
 * the distribution's package. Throws `RedisUnavailableError` when none is to be had, or COUNTERSIGN_NO_REDIS=1 says so.
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const env = options.env ?? process.env;
  if (env.COUNTERSIGN_NO_REDIS === "1") throw new RedisUnavailableError(["COUNTERSIGN_NO_REDIS=1 forbids it"]);
  if (env.REDIS_URL !== undefined && env.REDIS_URL !== "") return externalRedis(env.REDIS_URL);
  const binary = await findBinary(env);
  const temporary = options.dataDir === undefined;
  const folder =
    options.dataDir === undefined ? await mkdtemp(join(tmpdir(), "countersign-redis-")) : resolve(options.dataDir);
  if (temporary) watchFolder(folder);
  else await mkdir(folder, { recursive: true });
  const launch: Launch = { binary, folder, temporary, appendOnly: options.appendOnly ?? true };
  try {
    return await startOnPort(options.port, async (port) => {
      const start = (): Promise<ServerProcess> => serve(launch, port);
      return new LocalRedis(launch, port, await start(), start);
    });
  } catch (error) {
    if (temporary) await removeFolder(folder);
    throw error;
  }
}

function externalRedis(url: string): RedisServer {
  return {
    url,
    port: Number(new URL(url).port || 6379),
    pid: undefined,
    source: "external",
    stop: async () => undefined,
    kill: () => Promise.reject(new ExternalRedisError("kill")),
    restart: () => Promise.reject(new ExternalRedisError("restart")),
  };
}

async function findBinary(env: NodeJS.ProcessEnv): Promise<RedisBinary> {
  const found = await findOnPath(env.PATH ?? "");
  if (!("reason" in found)) return found;
  try {
    return await fetchPackage(cacheFolder(env));
  } catch (error) {
    throw new RedisUnavailableError([
      "REDIS_URL is not set",
      found.reason,
      error instanceof Error ? error.message : String(error),
    ]);
  }
}

async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  forgetFolder(folder);
}

async function serve(launch: Launch, port: number): Promise<ServerProcess> {
  const settings = {
    port,
    bind: "127.0.0.1",
    dir: launch.folder,
    save: "",
    appendonly: launch.appendOnly ? "yes" : "no",
    appendfsync: "everysec",
    "maxmemory-policy": "noeviction",
    daemonize: "no",
  };
  const server = await ServerProcess.spawn({
    name: "Redis",
    command: launch.binary.command,
    args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
    cwd: launch.folder,
    env: redisEnv(launch.binary.libraryPath),
    logFile: join(launch.folder, "countersign.log"),
    endSignal: "SIGTERM",
  });
  try {
    await server.waitUntilReady(() => answers(port, server.pid));
  } catch (error) {
    if (!(error instanceof ServerStartError) || !error.logTail.includes("Address already in use")) throw error;
    throw new PortTakenError("Redis", port, error.logTail);
  }
  return server;
}

/** Whether the server on this port has loaded its data and is the process we started (another may have taken the port). */
function answers(port: number, pid: number): Promise<boolean> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.write("PING\r\nINFO server\r\nQUIT\r\n"));
    socket.setEncoding("utf8");
    socket.setTimeout(1000, () => socket.destroy());
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("error", () => undefined); // "close" follows, and not to answer is an answer
    socket.on("close", () => resolve(text.startsWith("+PONG") && text.includes(`process_id:${pid}\r\n`)));
  });
}
