/** What a process of ours needs of the caller's environment to run at all; settings are given to it outright. */
const passedOn = ["PATH", "HOME", "USER", "TMPDIR", "TZ", "LANG", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"];

/** The caller's environment without any setting, so that a run does not depend on what a shell happens to export. */
export function bareEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && (passedOn.includes(name) || name.startsWith("OTEL_"))) kept[name] = value;
  }
  return kept;
}

/** Where the ledger and the queues are, as every process of the fleet reads it. */
export function stackEnvironment(
  stack: { databaseUrl: string; redisUrl: string | undefined },
  encryptionKey: string,
): Record<string, string> {
  return {
    DATABASE_URL: stack.databaseUrl,
    // Empty counts as unset, also where the caller's environment names one that was not to be used.
    REDIS_URL: stack.redisUrl ?? "",
    COUNTERSIGN_ENCRYPTION_KEY: encryptionKey,
  };
}

/** As a file to be read by a shell: `set -a; . FILE`. Values are quoted. */
export function environmentFile(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'\n`)
    .join("");
}
