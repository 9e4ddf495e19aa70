import type { NeutralPayload } from "@countersign/runtime";

/** A SEND to plan. */
export interface SendOrder {
  readonly intent: string;
  /** Its document was uploaded before. */
  readonly payload: NeutralPayload;
  readonly supersedes?: { readonly operationId: string; readonly mode: "void-first" | "send-first" };
}

/** One tenant's way to plan work. Every method returns after the commit. */
export interface Producer {
  /** Stores a PDF; returns its SHA-256 in hex. */
  uploadDocument(bytes: Buffer): Promise<string>;
  /** Returns the operation's id. */
  send(order: SendOrder): Promise<string>;
  /** Plans the VOID of a SEND; returns the VOID's id. */
  void(intent: string, targetOperationId: string): Promise<string>;
}
