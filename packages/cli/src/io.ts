import type { Environment } from "@countersign/runtime";

/** What a command touches of its process. */
export interface CliIo {
  out(text: string): void;
  err(text: string): void;
  /** Everything on standard input. */
  stdin(): Promise<string>;
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

const maxStdinBytes = 64 * 1024;

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > maxStdinBytes) break;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}
