import { HttpTransport } from "./http-call.js";
import type { SignatureProvider } from "./port.js";
import { WeSign } from "./wesign/wesign.js";

/** The adapters of one process, over one transport. */
export interface Providers {
  readonly all: readonly SignatureProvider[];
  byName(name: string): SignatureProvider | undefined;
  /** Ends idle sockets and waits for running calls. */
  close(): Promise<void>;
}

/** Adapters over a transport of one's own: other connection counts, a private certificate authority. */
export function createProviders(transport: HttpTransport = new HttpTransport()): Providers {
  const all: readonly SignatureProvider[] = [new WeSign(transport)];
  return {
    all,
    byName: (name) => all.find((provider) => provider.name === name),
    close: () => transport.close(),
  };
}

/** The process's adapters with default settings. No socket is opened before the first call. */
export const providers: Providers = createProviders();

/** The adapter of that name over the default transport, or undefined. */
export function providerByName(name: string): SignatureProvider | undefined {
  return providers.byName(name);
}
