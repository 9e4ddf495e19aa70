export {
  ExternalRedisError,
  FolderUnreachableError,
  PostgresUnavailableError,
  RedisUnavailableError,
  ServerStartError,
} from "./errors.js";
export { freePort } from "./free-port.js";
export { type PostgresOptions, type PostgresServer, startPostgres } from "./postgres.js";
export { isProcessAlive } from "./process-alive.js";
export { type RedisOptions, type RedisServer, startRedis } from "./redis.js";
export { type Direction, type ProxyCounters, type ProxyMode, type ProxyOptions, TcpProxy } from "./tcp-proxy.js";
export { createTestDatabase, type TestDatabase, type TestDatabaseOptions } from "./test-database.js";
export { forgetFolder, superviseChild, unwatchPid, type WatchOptions, watchFolder, watchPid } from "./watchdog.js";
