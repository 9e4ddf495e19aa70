export { chooseConnection } from "./choose-connection.js";
export {
  asCliError,
  CliError,
  type ExitCode,
  exitCodes,
  RefusedError,
  UnreachableError,
  UsageError,
} from "./errors.js";
export { type CliIo, processIo } from "./io.js";
export { type ProviderByName, planSend, planVoid, type SendRequest, type VoidTarget } from "./plan-send.js";
export { runCli } from "./program.js";
export { sandboxPdf } from "./sandbox-pdf.js";
export { parseSigners, type SignerInput } from "./signer-option.js";
export { table } from "./table.js";
export {
  defaultSandboxSigner,
  type VerifyOptions,
  type VerifyResult,
  type VerifyStep,
  verifyConnection,
} from "./verify-connection.js";
export { waitForResolution } from "./wait-for.js";
