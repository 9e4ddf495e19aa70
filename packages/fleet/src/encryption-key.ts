import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { FleetError } from "./errors.js";

const keyForm = /^[A-Za-z0-9+/]{43}=$/;

/**
 * The key kept in `file`, made there once and readable by its owner only. `made` says that it is new: without it the
 * data beside it can't be read any more. @throws FleetError when the file holds something else
 */
export async function keptKey(file: string): Promise<{ key: string; made: boolean }> {
  const fresh = randomBytes(32).toString("base64");
  try {
    await writeFile(file, `${fresh}\n`, { mode: 0o600, flag: "wx" });
    return { key: fresh, made: true };
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  const key = (await readFile(file, "utf8")).trim();
  if (!keyForm.test(key)) throw new FleetError(`${file} holds no key (32 bytes in base64): restore it from a backup`);
  return { key, made: false };
}
