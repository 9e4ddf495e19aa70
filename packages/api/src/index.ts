export { noteSubject } from "./access-log.js";
export type { ApiDeps } from "./deps.js";
export { badRequest, notFound, ProblemError } from "./problem.js";
export { apiRoutes, apiServer, operatingRoutes } from "./server.js";
export { toAnswer, toInboxEvent, toTicket } from "./to-answer.js";
export { Waiting } from "./wait.js";
