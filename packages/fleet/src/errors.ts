/** A start that cannot go on; the message names what to do and is fit for a terminal. */
export class FleetError extends Error {
  override readonly name: string = "FleetError";
}

/** A process of the fleet did not become ready, or ended before it was. */
export class ProcessNotReadyError extends FleetError {
  override readonly name = "ProcessNotReadyError";
  /** The last lines it logged. */
  readonly logTail: string;

  constructor(processName: string, why: string, logTail: string) {
    super(`${processName} did not become ready: ${why}${logTail === "" ? "" : `\n${logTail}`}`);
    this.logTail = logTail;
  }
}
