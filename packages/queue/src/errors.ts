/** Base of this package's errors: the text names settings and codes only, and may be logged. */
export class QueueError extends Error {
  override readonly name: string = "QueueError";
  readonly code: string;
  readonly safeMessage: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.safeMessage = message;
  }
}

/** The queue's store did not answer in time. Nothing is lost: the ledger dispatches again. */
export class QueueUnavailableError extends QueueError {
  override readonly name = "QueueUnavailableError";
}

/** Settings or a server that must not be used, with the remedy in the text. */
export class QueueSetupError extends QueueError {
  override readonly name = "QueueSetupError";
}

/** A job whose data no worker understands. It fails once and is kept for inspection; the ledger's row is untouched. */
export class InvalidJobError extends QueueError {
  override readonly name = "InvalidJobError";
}
