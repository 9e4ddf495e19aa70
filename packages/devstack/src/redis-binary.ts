import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A Redis or Valkey server program. */
export interface RedisBinary {
  readonly command: string;
  /** Where it comes from: "path" or "package". */
  readonly source: "path" | "package";
  /** Folders of shared libraries that it needs besides the system's. */
  readonly libraryPath: string | undefined;
  readonly version: string;
}

const NAMES = ["redis-server", "valkey-server"];
/** What BullMQ needs. Valkey counts on from 7.2. */
const OLDEST = [6, 2] as const;

/** Runs `--version`; throws when the program does not run (a library is missing) or is older than 6.2. */
export async function inspect(
  command: string,
  source: RedisBinary["source"],
  libraryPath?: string,
): Promise<RedisBinary> {
  const { stdout } = await run(command, ["--version"], { env: redisEnv(libraryPath), timeout: 10_000 });
  const [, version = "", major = "0", minor = "0"] = /v=((\d+)\.(\d+)[\w.]*)/.exec(stdout) ?? [];
  const recent = Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]);
  if (!recent) throw new Error(`${command} is version "${version}", older than ${OLDEST.join(".")}`);
  return { command, source, libraryPath, version };
}

/** The environment to run the program in. */
export function redisEnv(libraryPath: string | undefined): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "/usr/bin:/bin",
    LC_ALL: "C",
    TZ: "UTC",
    ...(libraryPath === undefined ? {} : { LD_LIBRARY_PATH: libraryPath }),
  };
}

/** The first usable server on the PATH, or why there is none. */
export async function findOnPath(path: string): Promise<RedisBinary | { readonly reason: string }> {
  const reasons: string[] = [];
  for (const folder of path.split(delimiter).filter((entry) => entry !== "")) {
    for (const name of NAMES) {
      const command = join(folder, name);
      if (!(await isExecutable(command))) continue;
      try {
        return await inspect(command, "path");
      } catch (error) {
        reasons.push(error instanceof Error ? error.message : String(error));
      }
    }
  }
  return { reason: reasons.length > 0 ? reasons.join("; ") : `no ${NAMES.join(" or ")} on the PATH` };
}

/** Whether this file may be executed by us. */
export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false; // absent or forbidden: the same for us
  }
}
