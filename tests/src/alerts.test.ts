import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ticketKinds } from "@countersign/ledger";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { metricsInDocs, metricsInExpression, readText, repository } from "./metrics-in-code.js";
import { promtool } from "./promtool.js";

const folder = `${repository}deploy/prometheus/`;
/** The first run may have to download promtool. */
const slow = 300_000;

const rulesFile = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          labels: z.object({ severity: z.enum(["page", "warn"]) }),
          annotations: z.object({ summary: z.string(), description: z.string(), runbook_url: z.string() }),
        }),
      ),
    }),
  ),
});

const testFile = z.object({
  tests: z.array(
    z.object({ promql_expr_test: z.array(z.object({ expr: z.string(), exp_samples: z.array(z.unknown()) })) }),
  ),
});

async function alerts() {
  const { groups } = rulesFile.parse(parse(await readText("deploy/prometheus/alerts.yml")));
  return groups.flatMap(({ rules }) => rules);
}

/** As GitHub makes it from a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

async function runbookAnchors(): Promise<Set<string>> {
  const headings = (await readText("docs/runbook.md")).matchAll(/^#+ (.+)$/gm);
  return new Set([...headings].map(([, heading = ""]) => anchorOf(heading)));
}

it("promtool accepts the rules and the configuration", { timeout: slow }, async () => {
  expect(await promtool("check", "rules", `${folder}alerts.yml`)).toContain("SUCCESS");
  expect(await promtool("check", "config", `${folder}prometheus.yml`)).toContain("SUCCESS");
});

it("promtool makes each alert fire and end", { timeout: slow }, async () => {
  expect(await promtool("test", "rules", `${folder}alerts.test.yml`)).toContain("SUCCESS");
});

it("every alert is made to fire and to be silent again by a test", async () => {
  const { tests } = testFile.parse(parse(await readText("deploy/prometheus/alerts.test.yml")));
  const expectations = tests.flatMap(({ promql_expr_test }) => promql_expr_test);
  for (const { alert } of await alerts()) {
    const about = expectations.filter(({ expr }) => expr.includes(`alertname="${alert}"`));
    const firing = about.map(({ exp_samples }) => exp_samples.length > 0);
    expect([firing.includes(true), firing.includes(false)], alert).toEqual([true, true]);
  }
});

it("every alert has its section in the runbook", async () => {
  const anchors = await runbookAnchors();
  for (const { alert, annotations } of await alerts()) {
    expect(annotations.runbook_url).toBe(`docs/runbook.md#${anchorOf(alert)}`);
    expect(anchors, alert).toContain(anchorOf(alert));
  }
});

it("every kind of ticket has its section in the runbook, and no section is about an alert that is gone", async () => {
  const anchors = await runbookAnchors();
  for (const kind of ticketKinds) expect(anchors).toContain(`ticket-${kind}`);
  const known = new Set((await alerts()).map(({ alert }) => anchorOf(alert)));
  const stale = [...anchors].filter((anchor) => anchor.startsWith("countersign") && !known.has(anchor));
  expect(stale).toEqual([]);
});

it("no alert goes by depth alone", async () => {
  for (const { alert, expr } of await alerts()) {
    expect(expr, alert).not.toMatch(/countersign_(operations|queue_jobs|inbox_events|operations_waiting)\b/);
  }
});

const dashboardFile = z.object({
  uid: z.string(),
  panels: z.array(
    z.object({
      id: z.number(),
      title: z.string(),
      type: z.string(),
      gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
      targets: z.array(z.object({ expr: z.string() })).optional(),
    }),
  ),
});

async function dashboardExpressions(): Promise<string[]> {
  const { panels } = dashboardFile.parse(JSON.parse(await readText("deploy/grafana/countersign.json")));
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

it("rules and dashboard use documented metrics only", async () => {
  const documented = await metricsInDocs();
  const names = new Set(documented.map(({ name }) => name));
  const expressions = [...(await alerts()).map(({ expr }) => expr), ...(await dashboardExpressions())];
  const used = expressions.flatMap((expr) => metricsInExpression(expr, documented));
  expect(used.length).toBeGreaterThan(50);
  expect(used.filter((name) => !names.has(name))).toEqual([]);
});

it("the dashboard has one panel per place and id, and each of its expressions parses", { timeout: slow }, async () => {
  const { panels } = dashboardFile.parse(JSON.parse(await readText("deploy/grafana/countersign.json")));
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(new Set(panels.map(({ gridPos }) => `${gridPos.x} ${gridPos.y}`)).size).toBe(panels.length);
  // Grafana fills in its own intervals; promtool checks the rest as rules.
  const rules = (await dashboardExpressions()).map((expr, index) => ({
    record: `panel:${index}`,
    expr: expr.replaceAll("$__rate_interval", "1m"),
  }));
  const file = join(await mkdtemp(join(tmpdir(), "countersign-dashboard-")), "rules.yml");
  await writeFile(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
  expect(await promtool("check", "rules", file)).toContain("SUCCESS");
  await rm(dirname(file), { recursive: true });
});
