import { readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PortTakenError, ServerStartError } from "./errors.js";
import { startOnPort } from "./free-port.js";
import { type PostgresBinaries, postgresBinaries } from "./postgres-binaries.js";
import {
  type Cluster,
  persistentCluster,
  projectDataDir,
  SERVER_ENV,
  SUPERUSER,
  temporaryCluster,
} from "./postgres-cluster.js";
import { ServerProcess } from "./server-process.js";
import { type ServiceUser, serviceUser } from "./service-user.js";
import { forgetFolder } from "./watchdog.js";

/** How to start PostgreSQL. */
export interface PostgresOptions {
  /** Folder of the data. Default: a temporary one, removed at the end; with `persistent`, one that belongs to the working directory. */
  readonly dataDir?: string;
  /** TCP port on 127.0.0.1. Default: a free one. */
  readonly port?: number;
  /** Keep the data and use it again at the next start. Default: true exactly when `dataDir` is given. */
  readonly persistent?: boolean;
  /** False switches fsync off: quicker, and safe against everything but the machine's own crash. Default true. */
  readonly durable?: boolean;
}

/** A running PostgreSQL. Ended, and removed if temporary, also when this process is killed. */
export interface PostgresServer {
  /** Address of the database `postgres` as superuser, password included: not for logs. */
  readonly url: string;
  readonly port: number;
  /** Process id of the postmaster; another one after `restart`. */
  readonly pid: number;
  readonly dataDir: string;
  readonly running: boolean;
  /** Ends it for good; removes a temporary data folder. May be called twice. */
  stop(): Promise<void>;
  /** Sends the postmaster a signal (default SIGKILL) and waits for its end where that signal brings one. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port and data, after an orderly end if it still runs. */
  restart(): Promise<void>;
}

const STOP_GRACE_MS = 10_000;
/** Backends of a killed postmaster need a moment to notice; until then its successor is refused. */
const PREDECESSOR_WAIT_MS = 10_000;
const PREDECESSOR_POLL_MS = 50;

class EmbeddedPostgres implements PostgresServer {
  readonly port: number;
  readonly #cluster: Cluster;
  readonly #start: () => Promise<ServerProcess>;
  #server: ServerProcess;

  constructor(cluster: Cluster, port: number, server: ServerProcess, start: () => Promise<ServerProcess>) {
    this.#cluster = cluster;
    this.port = port;
    this.#server = server;
    this.#start = start;
  }

  get url(): string {
    return `postgres://${SUPERUSER}:${this.#cluster.password}@127.0.0.1:${this.port}/postgres`;
  }

  get pid(): number {
    return this.#server.pid;
  }

  get dataDir(): string {
    return this.#cluster.dataDir;
  }

  get running(): boolean {
    return this.#server.running;
  }

  async stop(): Promise<void> {
    const { temporaryFolder } = this.#cluster;
    // Fast shutdown writes a checkpoint; what is thrown away needs none (immediate shutdown).
    await this.#server.end(temporaryFolder === undefined ? "SIGINT" : "SIGQUIT", STOP_GRACE_MS);
    if (temporaryFolder === undefined) return;
    await removeTemporaryFolder(temporaryFolder);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#server.kill(signal);
  }

  async restart(): Promise<void> {
    await this.#server.end("SIGINT", STOP_GRACE_MS);
    this.#server = await this.#start();
  }
}

/**
 * Starts a real PostgreSQL 18 on 127.0.0.1 (UTF8, locale C, 200 connections), as the user `postgres` when we are root.
 * Throws `PostgresUnavailableError` (no binaries here), `FolderUnreachableError` or `ServerStartError`.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const user = await serviceUser();
  const binaries = await postgresBinaries(user);
  const durable = options.durable ?? true;
  const cluster = await openCluster(options, binaries, user, durable);
  try {
    return await startOnPort(options.port, async (port) => {
      const start = (): Promise<ServerProcess> => serveAfterPredecessor(binaries, cluster, user, port, durable);
      return new EmbeddedPostgres(cluster, port, await start(), start);
    });
  } catch (error) {
    if (cluster.temporaryFolder !== undefined) await removeTemporaryFolder(cluster.temporaryFolder);
    throw error;
  }
}

async function openCluster(
  options: PostgresOptions,
  binaries: PostgresBinaries,
  user: ServiceUser | undefined,
  durable: boolean,
): Promise<Cluster> {
  const persistent = options.persistent ?? options.dataDir !== undefined;
  if (!persistent && options.dataDir === undefined) return temporaryCluster(binaries, user, durable);
  const dataDir = options.dataDir ?? (await projectDataDir(process.cwd(), user));
  const cluster = await persistentCluster(binaries, user, dataDir);
  // A chosen folder that is not to be kept goes as a temporary one does.
  return persistent ? cluster : { ...cluster, temporaryFolder: cluster.dataDir };
}

async function removeTemporaryFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  forgetFolder(folder);
}

async function serveAfterPredecessor(
  binaries: PostgresBinaries,
  cluster: Cluster,
  user: ServiceUser | undefined,
  port: number,
  durable: boolean,
): Promise<ServerProcess> {
  const start = performance.now();
  for (;;) {
    try {
      return await serve(binaries, cluster, user, port, durable);
    } catch (error) {
      const predecessor = error instanceof ServerStartError && error.logTail.includes("shared memory block");
      if (!predecessor || performance.now() - start > PREDECESSOR_WAIT_MS) throw error;
      await delay(PREDECESSOR_POLL_MS);
    }
  }
}

async function serve(
  binaries: PostgresBinaries,
  cluster: Cluster,
  user: ServiceUser | undefined,
  port: number,
  durable: boolean,
): Promise<ServerProcess> {
  const settings = {
    port,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: 200,
    timezone: "UTC",
    log_timezone: "UTC",
    // Statements and details carry values, and the log is no place for those.
    log_min_error_statement: "panic",
    log_error_verbosity: "terse",
    ...(durable ? {} : { fsync: "off", full_page_writes: "off" }),
  };
  const server = await ServerProcess.spawn({
    name: "PostgreSQL",
    command: binaries.postgres,
    args: ["-D", cluster.dataDir, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])],
    cwd: dirname(cluster.logFile),
    env: SERVER_ENV,
    logFile: cluster.logFile,
    user,
    endSignal: "SIGINT",
  });
  try {
    await server.waitUntilReady(() => isReady(cluster.dataDir, server.pid));
  } catch (error) {
    if (!(error instanceof ServerStartError) || !error.logTail.includes("Address already in use")) throw error;
    throw new PortTakenError("PostgreSQL", port, error.logTail);
  }
  return server;
}

/** What pg_ctl does: the postmaster writes its pid (line 1) and its status (line 8) to a file. */
async function isReady(dataDir: string, pid: number): Promise<boolean> {
  try {
    const lines = (await readFile(join(dataDir, "postmaster.pid"), "utf8")).split("\n");
    return Number(lines[0]) === pid && lines[7]?.trim() === "ready";
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}
