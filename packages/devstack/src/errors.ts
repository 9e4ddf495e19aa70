/** A server of the development stack ended, or gave no sign of being ready, while it was being started. */
export class ServerStartError extends Error {
  override readonly name = "ServerStartError";
  /** The last lines the server wrote before it gave up. */
  readonly logTail: string;

  constructor(server: string, reason: string, logTail: string) {
    super(`${server} did not start: ${reason}${logTail === "" ? "" : `\n${logTail}`}`);
    this.logTail = logTail;
  }
}

/** The port was taken between choosing and binding it; with a port of our own choice, another one is tried. */
export class PortTakenError extends ServerStartError {
  constructor(server: string, port: number, logTail: string) {
    super(server, `port ${port} is taken`, logTail);
  }
}

/** A folder that the server's user (root runs PostgreSQL as `postgres`) can't reach. */
export class FolderUnreachableError extends Error {
  override readonly name = "FolderUnreachableError";

  constructor(folder: string, user: string) {
    super(
      `${folder} can't be reached by the user "${user}" that PostgreSQL runs as under root: choose a folder all of whose parents are traversable by everyone, for example below /var/lib or /tmp`,
    );
  }
}

/** PostgreSQL's binaries can't be had here: unsupported platform, or the optional package is not installed. */
export class PostgresUnavailableError extends Error {
  override readonly name = "PostgresUnavailableError";
}

/** There is no Redis to be had. The message names the three ways to get one, and why the last one failed. */
export class RedisUnavailableError extends Error {
  override readonly name = "RedisUnavailableError";
  /** Why each way that was tried did not work. */
  readonly reasons: readonly string[];

  constructor(reasons: readonly string[]) {
    super(
      [
        "No Redis to be had. Any one of these three is enough:",
        "  1. set REDIS_URL to a Redis 6.2+ or Valkey that runs already (redis://127.0.0.1:6379)",
        "  2. install redis-server or valkey-server so that it is on the PATH (brew install redis, dnf install valkey, …)",
        "  3. on Debian or Ubuntu: let the distribution's package be fetched into a cache folder, without root (needs apt-get, dpkg and network access to the package mirror)",
        ...reasons.map((reason) => `  tried: ${reason}`),
      ].join("\n"),
    );
    this.reasons = reasons;
  }
}

/** `kill` or `restart` of a Redis that REDIS_URL names: it isn't ours. */
export class ExternalRedisError extends Error {
  override readonly name = "ExternalRedisError";

  constructor(action: string) {
    super(`Refusing to ${action} the Redis that REDIS_URL names: it was not started here.`);
  }
}
