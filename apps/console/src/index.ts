export { buildConsole } from "./server.js";
