/** Adapters for tests against the simulator: what the port has to carry besides WeSign. None is in the registry. */
export { BareProvider } from "./bare.js";
export { OddCodesProvider } from "./odd-codes.js";
export { PolledProvider } from "./polled.js";
export { SafeKeyProvider } from "./safe-key.js";
