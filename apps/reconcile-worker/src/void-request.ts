import type { VoidRequest } from "@countersign/ledger";
import { bodyDigest, type SignatureProvider } from "@countersign/provider";

/** Makes the request of a VOID that the system plans itself. Throws where the adapter has none. */
export const voidRequestOf =
  (provider: SignatureProvider): VoidRequest =>
  (ids) => {
    const request = provider.prepare("VOID", { schemaVersion: 1 }, ids);
    if ("refused" in request) throw new Error(`this provider has no VOID: ${request.field}`);
    return { request, bodyDigest: Buffer.from(bodyDigest(request, new Map()), "hex") };
  };
