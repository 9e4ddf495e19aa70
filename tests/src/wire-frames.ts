import type { Direction } from "@countersign/devstack";

/** One piece of a conversation that can be held back. */
export interface Frame {
  readonly bytes: Buffer;
  /** What it is, for a reader. */
  readonly name: string;
}

/** Cuts one direction of one connection into frames, whatever chunks it comes in. */
export type Framer = (chunk: Buffer) => Frame[];

/** `chunks`: frames are what arrives together. `postgres`: its messages, once the start-up packet is through. */
export type Protocol = "chunks" | "postgres";

export function framer(protocol: Protocol, direction: Direction): Framer {
  if (protocol === "chunks") return (bytes) => [{ bytes, name: `${bytes.length} bytes` }];
  return postgresFramer(direction);
}

const clientMessages: Readonly<Record<string, string>> = {
  B: "Bind",
  C: "Close",
  D: "Describe",
  E: "Execute",
  H: "Flush",
  P: "Parse",
  Q: "Query",
  S: "Sync",
  X: "Terminate",
  p: "Password",
};
const serverMessages: Readonly<Record<string, string>> = {
  "1": "ParseComplete",
  "2": "BindComplete",
  "3": "CloseComplete",
  C: "CommandComplete",
  D: "DataRow",
  E: "ErrorResponse",
  N: "Notice",
  R: "Authentication",
  S: "ParameterStatus",
  T: "RowDescription",
  Z: "ReadyForQuery",
  n: "NoData",
  t: "ParameterDescription",
};

/** A type byte, then a length that counts itself; the client's first packet has no type byte. */
function postgresFramer(direction: Direction): Framer {
  const names = direction === "toTarget" ? clientMessages : serverMessages;
  let started = direction === "toClient";
  let pending = Buffer.alloc(0);
  return (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    const frames: Frame[] = [];
    for (;;) {
      const header = started ? 1 : 0;
      if (pending.length < header + 4) return frames;
      const end = header + pending.readInt32BE(header);
      if (pending.length < end) return frames;
      const bytes = pending.subarray(0, end);
      const type = started ? String.fromCharCode(bytes[0] ?? 0) : "";
      frames.push({ bytes, name: started ? describe(names[type] ?? type, bytes) : "StartupMessage" });
      started = true;
      pending = pending.subarray(end);
    }
  };
}

/** A statement's first words, so that a table of steps can be read; parameters are never shown. */
function describe(name: string, bytes: Buffer): string {
  if (name !== "Parse" && name !== "Query") return name;
  const [first = "", second = ""] = bytes.subarray(5).toString("latin1").split("\0");
  // A prepared statement has its own name in front.
  const text = name === "Parse" ? second : first;
  const verbs = text.match(/\b(INSERT INTO|UPDATE|FROM|begin|commit|rollback|savepoint|release)\b( [a-z_]+)?/gi) ?? [];
  return `${name} ${verbs.slice(0, 2).join(" ") || text.slice(0, 24)}`.trim();
}
