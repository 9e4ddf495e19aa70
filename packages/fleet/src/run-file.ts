import { randomUUID } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { isProcessAlive } from "@countersign/devstack";
import { z } from "zod";
import { FleetError } from "./errors.js";
import type { ProcessAddress } from "./fleet.js";

/** What `.countersign/run.json` says while a fleet runs: addresses and pids, nothing secret. */
export interface RunRecord {
  /** The process that started the others. */
  readonly pid: number;
  readonly startedAt: string;
  readonly api: string;
  readonly docs: string;
  readonly webhooks: string;
  readonly console: string;
  readonly queues: "redis" | "postgres";
  readonly processes: readonly ProcessAddress[];
}

const owner = z.looseObject({ pid: z.int().positive() });

/** @throws FleetError while the fleet that wrote the file still runs */
export async function refuseIfRunning(file: string): Promise<void> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw error;
  }
  const pid = pidIn(text);
  if (pid !== undefined && pid !== process.pid && isProcessAlive(pid)) {
    throw new FleetError(
      `a fleet runs here already (pid ${pid}, ${file}): stop it first, or choose another --data-dir`,
    );
  }
}

function pidIn(text: string): number | undefined {
  try {
    return owner.parse(JSON.parse(text)).pid;
  } catch {
    return undefined; // half-written by a process that was killed: nobody's
  }
}

/** Replaces the file in one step, so that a reader never sees half of it. */
export async function writeRunFile(file: string, record: RunRecord): Promise<void> {
  // A name of its own: two workers that die together are recorded at the same time.
  const fresh = `${file}.${randomUUID()}`;
  await writeFile(fresh, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  await rename(fresh, file);
}

export async function removeRunFile(file: string): Promise<void> {
  await rm(file, { force: true });
}
