import { fileURLToPath } from "node:url";

/** The processes that make up a fleet (docs/architecture.md). */
export const processKinds = ["enqueuer", "webhook-ingress", "console", "submit", "reconcile", "webhook-apply"] as const;
export type ProcessKind = (typeof processKinds)[number];

/** How many processes of each kind. */
export type Scale = Readonly<Record<ProcessKind, number>>;

export const defaultScale: Scale = {
  enqueuer: 1,
  "webhook-ingress": 1,
  console: 1,
  submit: 1,
  reconcile: 1,
  "webhook-apply": 1,
};

interface KindFacts {
  readonly app: string;
  readonly entry: string;
  /** Those that take work from outside stop before those that work it off. */
  readonly stopsIn: 1 | 2;
  /** Scaled by `--scale`; the others have one address that people know. */
  readonly scalable: boolean;
}

export const facts: Readonly<Record<ProcessKind, KindFacts>> = {
  enqueuer: { app: "enqueuer", entry: "main.js", stopsIn: 1, scalable: false },
  "webhook-ingress": { app: "webhook-receiver", entry: "ingress-main.js", stopsIn: 1, scalable: false },
  console: { app: "console", entry: "main.js", stopsIn: 1, scalable: false },
  submit: { app: "submit-worker", entry: "main.js", stopsIn: 2, scalable: true },
  reconcile: { app: "reconcile-worker", entry: "main.js", stopsIn: 2, scalable: true },
  "webhook-apply": { app: "webhook-receiver", entry: "apply-main.js", stopsIn: 2, scalable: true },
};

/** The built script of a kind. The same from `src` and from `dist`. */
export function scriptOf(kind: ProcessKind): string {
  const { app, entry } = facts[kind];
  return fileURLToPath(new URL(`../../../apps/${app}/dist/${entry}`, import.meta.url));
}

const maxPerKind = 64;

/** Reads `submit=4,reconcile=2`. The message of the Error thrown names the part that is wrong and what is allowed. */
export function parseScale(text: string): Scale {
  const scale = { ...defaultScale };
  for (const part of text.split(",")) {
    const [name = "", count = "", ...rest] = part.trim().split("=");
    const kind = processKinds.find((known) => known === name);
    if (kind === undefined || !facts[kind].scalable) {
      const allowed = processKinds.filter((known) => facts[known].scalable).join(", ");
      throw new RangeError(`"${name}" cannot be scaled here; use ${allowed}, as in submit=4,reconcile=2`);
    }
    if (rest.length > 0 || !/^\d{1,2}$/.test(count) || Number(count) < 1 || Number(count) > maxPerKind) {
      throw new RangeError(`${name} needs a number of processes from 1 to ${maxPerKind}, as in ${name}=2`);
    }
    scale[kind] = Number(count);
  }
  return scale;
}
