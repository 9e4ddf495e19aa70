import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The operating system user that PostgreSQL runs as when we are root (it refuses to run as root). */
export interface ServiceUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const NAME = "postgres";

async function lookUp(): Promise<ServiceUser> {
  const [uid, gid] = await Promise.all([run("id", ["-u", NAME]), run("id", ["-g", NAME])]);
  return { name: NAME, uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

async function create(): Promise<void> {
  try {
    await run("useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/bin/false", NAME]);
  } catch (error) {
    // BusyBox systems have only adduser; two processes may also have tried at once, which the look-up settles.
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) return;
    await run("adduser", ["-S", "-D", "-H", "-s", "/bin/false", NAME]);
  }
}

/** The user `postgres`, created if need be, when we are root; undefined (run as who we are) otherwise. Throws when it can't be created. */
export async function serviceUser(): Promise<ServiceUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  try {
    return await lookUp();
  } catch {
    await create(); // `id` exits non-zero when there is no such user
    return lookUp();
  }
}

/** Whether `user` can walk down to `path`: the search permission of every folder that exists on the way, `path` included. */
export async function isReachable(path: string, user: ServiceUser): Promise<boolean> {
  const full = resolve(path);
  const parent = dirname(full);
  if (parent !== full && !(await isReachable(parent, user))) return false;
  try {
    const { uid, gid, mode } = await stat(full);
    const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0;
    return ((mode >> shift) & 1) === 1;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return true; // to be created
    throw error;
  }
}
