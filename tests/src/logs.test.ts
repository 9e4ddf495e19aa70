import { readdir, readFile } from "node:fs/promises";
import { createLogger } from "@countersign/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { commonFields, type DocumentedLine, documentedLines, faultsOf } from "./documented-lines.js";
import { ProducerScene, patientMs } from "./producer-scene.js";
import { pause, until } from "./real-processes.js";

const logLine = z.looseObject({
  msg: z.string(),
  name: z.string(),
  level: z.string(),
  operation: z.string().optional(),
  from: z.string().optional(),
  state: z.string().optional(),
});
type LogLine = z.output<typeof logLine>;

let documented: ReadonlyMap<string, DocumentedLine>;
beforeAll(async () => {
  documented = await documentedLines();
});

describe("real processes", () => {
  let scene: ProducerScene;
  beforeAll(async () => {
    scene = await ProducerScene.start();
  }, patientMs);
  afterAll(async () => {
    await scene.stop();
  });

  const texts = (): string[] => scene.fleet.processes.flatMap(({ output }) => output.split("\n").filter(Boolean));
  const lines = (): LogLine[] => texts().map((text) => logLine.parse(JSON.parse(text)));
  const about = (operationId: string): LogLine[] => lines().filter(({ operation }) => operation === operationId);

  /** Transitions as the lines tell them. */
  const told = (operationId: string): string[] =>
    about(operationId)
      .filter(
        ({ msg }) => msg === "planned" || ["claimed", "provider call recorded", "reconciled", "swept"].includes(msg),
      )
      .map(({ from, state }) => `${from ?? null} ${state}`);

  /** Transitions as the ledger's history tells them. */
  const happened = async (operationId: string): Promise<string[]> =>
    (await scene.fleet.scene.history(operationId))
      .filter(({ kind }) => kind === "transition" || kind === "planned")
      .map(({ fromState, toState }) => `${fromState} ${toState}`);

  it("are silent while there is nothing to do", async () => {
    await until(
      async () => lines().filter(({ msg }) => msg === "started").length,
      (started) => started === scene.fleet.processes.length,
    );
    const before = texts();
    await pause(1_500);
    expect(texts()).toEqual(before);
  });

  it("write one line per transition and per call of a SEND", async () => {
    const id = await scene.send({ key: "sent" });
    await scene.fleet.allIn([id], "CONFIRMED");
    await until(
      async () => about(id).map(({ msg }) => msg),
      (names) => names.includes("provider call recorded") && names.includes("request"),
    );
    expect(told(id).toSorted()).toEqual((await happened(id)).toSorted());
    expect(about(id).filter(({ msg }) => msg === "provider call recorded")).toMatchObject([
      { tenant: "acme", attempt: 1, outcome: "accepted", statusCode: 201, state: "CONFIRMED", ms: expect.any(Number) },
    ]);
  });

  it("write one line per transition and per call of an UNKNOWN until it is settled", async () => {
    scene.fleet.scene.simulator.script({ kind: "lost-response" });
    const id = await scene.send({ key: "doubtful" });
    await scene.fleet.allIn([id], "CONFIRMED");
    await until(
      async () => about(id),
      (all) => all.some(({ msg, state }) => msg === "reconciled" && state === "CONFIRMED"),
    );
    expect(told(id).toSorted()).toEqual((await happened(id)).toSorted());
    expect(about(id).filter(({ msg }) => msg === "provider call recorded")).toMatchObject([
      { outcome: "ambiguous", state: "UNKNOWN", ms: expect.any(Number) },
    ]);
    const looks = about(id).filter(({ msg }) => msg === "provider asked");
    for (const look of looks) expect(look).toMatchObject({ attempt: 1, outcome: "found", ms: expect.any(Number) });
    const histories = await scene.fleet.scene.history(id);
    const asked = histories.filter(
      ({ evidence }) => evidence !== null && "asked" in evidence && evidence.asked !== "record",
    );
    expect(looks).toHaveLength(asked.length);
  });

  it("tell of applied events", async () => {
    await until(
      async () => lines().filter(({ msg, outcome }) => msg === "event applied" && outcome !== "gone"),
      (applied) => applied.some(({ operation }) => operation !== undefined),
    );
  });

  it("go on when their output is closed, and end as they should", async () => {
    for (const { child } of scene.fleet.processes) child.stdout?.destroy();
    const id = await scene.send({ key: "unheard" });
    await scene.fleet.allIn([id], "CONFIRMED");
    const codes = await Promise.all(
      scene.fleet.processes.map(
        async (each) => `${each.child.spawnargs[1]?.split("/apps/")[1]} ${await each.kill("SIGTERM")}`,
      ),
    );
    expect(codes).toEqual(codes.map((code) => code.replace(/ .*/, " 0")));
  });

  it("write nothing but what the page says", () => {
    expect(lines().length).toBeGreaterThan(20);
    const faults = lines().flatMap((line) =>
      faultsOf(line, documented.get(line.msg)).map((fault) => `${line.msg} ${fault}`),
    );
    expect([...new Set(faults)]).toEqual([]);
  });
});

describe("docs/logs.md", () => {
  it("names only fields that the logger lets through, and says what each means", async () => {
    const page = await readFile(new URL("../../docs/logs.md", import.meta.url), "utf8");
    const meanings = page.slice(page.indexOf("## Fields"));
    const passed: string[] = [];
    const logger = createLogger({ name: "test", destination: { write: (line) => void passed.push(line) } });
    for (const [name, { required, optional }] of documented) {
      for (const field of [...required, ...optional]) {
        logger.fatal({ [field]: field === "err" ? new Error("x") : "x" }, name);
        const seen: object = JSON.parse(passed.at(-1) ?? "{}");
        expect(
          Object.keys(seen).filter((key) => !commonFields.has(key)),
          `${field} of ${name}`,
        ).toEqual([field]);
        expect(meanings, `${field} of ${name}`).toContain(`\`${field}\``);
      }
    }
  });

  it("names every line that the code writes, at its level, and no other", async () => {
    const written = new Set<string>();
    for (const folder of ["apps", "packages"]) {
      const root = new URL(`../../${folder}/`, import.meta.url);
      for (const file of await readdir(root, { recursive: true })) {
        if (!/^[^/]+\/src\/.*\.ts$/.test(file) || /test|bench|^simulator|^devstack/.test(file)) continue;
        const source = await readFile(new URL(file, root), "utf8");
        for (const [level, name] of linesIn(source)) written.add(`${level} ${name}`);
      }
    }
    const promised = [...documented].map(([name, { level }]) => `${level} ${name}`);
    expect([...written].toSorted()).toEqual(promised.toSorted());
  });
});

/** Levels and names of the lines in a source file: the last text of each call of a logger. */
function* linesIn(source: string): Generator<[level: string, name: string]> {
  for (const call of source.matchAll(/logger\s*\.(info|warn|error|fatal)\(/gi)) {
    let depth = 1;
    let end = call.index + call[0].length;
    for (; depth > 0; end += 1) depth += source[end] === "(" ? 1 : source[end] === ")" ? -1 : 0;
    const texts = [...source.slice(call.index, end).matchAll(/"([^"]*)"/g)].map(([, text]) => text);
    const name = texts.at(-1);
    if (name !== undefined) yield [call[1] ?? "", name];
  }
  for (const [, name = ""] of source.matchAll(/createErrorReporter\([^,]+, "([^"]+)"\)/g)) yield ["warn", name];
}
