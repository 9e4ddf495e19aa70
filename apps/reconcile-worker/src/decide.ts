import { decideFinalize } from "./decide-finalize.js";
import { decideResend } from "./decide-resend.js";
import { decideSend } from "./decide-send.js";
import { decideVoid } from "./decide-void.js";
import type { Capabilities, Clock, EvidenceFound, Verdict } from "./verdict.js";

/**
 * The decision table of DESIGN §6, pure: evidence, what the connection can prove, and database time in, a verdict out.
 * No evidence never gives `confirm`, `absent` or `closed`; more evidence never turns a conflict into a confirmation; the
 * order of evidence never matters.
 */
export function decide(evidence: EvidenceFound, capabilities: Capabilities, clock: Clock): Verdict {
  switch (evidence.action) {
    case "SEND":
      return decideSend(evidence, capabilities, clock);
    case "VOID":
      return decideVoid(evidence, capabilities, clock);
    case "RESEND":
      return decideResend(evidence, capabilities, clock);
    case "FINALIZE":
      return decideFinalize(evidence, clock);
  }
}
