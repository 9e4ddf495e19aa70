import type { Environment } from "@countersign/runtime";

/** What a command touches of its process. */
export interface CliIo {
  out(text: string): void;
  err(text: string): void;
  /** Everything on standard input, cut off soon after `maxBytes`. */
  stdin(maxBytes: number): Promise<Buffer>;
  readonly env: Environment;
}

/** The process's own streams. */
export function processIo(): CliIo {
  return {
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    stdin: readStdin,
    env: process.env,
  };
}

async function readStdin(maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > maxBytes) break;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}
