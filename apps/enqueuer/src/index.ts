export type { EnqueuerDeps } from "./deps.js";
export { buildServer } from "./server.js";
