export { Child, type ChildOptions } from "./child.js";
export { type Contract, ContractsError, readContracts, repeatAsRevisions } from "./contracts.js";
export { auditDemo, type DemoAudit, type Finding, isClean } from "./demo/audit.js";
export { FleetError, ProcessNotReadyError } from "./errors.js";
export { Fleet, type FleetOptions, type ProcessAddress } from "./fleet.js";
export { defaultScale, type ProcessKind, parseScale, processKinds, type Scale } from "./fleet-kinds.js";
export { SimulatorProcess } from "./simulator-process.js";
export { type Stack, type StackOptions, startEmbeddedStack } from "./stack.js";
export { shrunkProvider, shrunkWindows } from "./windows.js";
