import { fileURLToPath } from "node:url";
import { getOperation } from "@countersign/ledger";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startChromium } from "./chromium.js";
import { ConsoleScene } from "./console-scene.js";

let scene: ConsoleScene;
let browser: Browser;
let page: Page;
/** Requests that would have left the house, and what the page complained of. */
const foreign: string[] = [];
const complaints: string[] = [];

const images = process.env.SCREENSHOTS === "1" ? fileURLToPath(new URL("../../../docs/images/", import.meta.url)) : "";

async function picture(name: string): Promise<void> {
  if (images !== "") await page.screenshot({ path: `${images}console-${name}.png`, scale: "css" });
}

async function open(settings: Parameters<Browser["newContext"]>[0], token: string): Promise<Page> {
  const opened = await (await browser.newContext(settings)).newPage();
  opened.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith("http") && url.host !== new URL(scene.console.url).host) foreign.push(url.host);
  });
  opened.on("console", (message) => {
    const expected = message.text().includes("401");
    if (message.type() === "error" && !expected) complaints.push(message.text());
  });
  opened.on("pageerror", (error) => complaints.push(error.message));
  await opened.goto(scene.console.url);
  await opened.getByTestId("login-token").fill(token);
  await opened.getByTestId("login-submit").click();
  await opened.getByRole("heading", { name: "Overview" }).waitFor();
  return opened;
}

let unknown: string;
let review: Awaited<ReturnType<ConsoleScene["twoMatches"]>>;
let dead: string;

beforeAll(async () => {
  scene = await ConsoleScene.start();
  browser = await startChromium();
  unknown = await scene.unknown();
  review = await scene.twoMatches();
  dead = await scene.deadLetter();
  page = await open({ viewport: { width: 1_280, height: 800 } }, scene.token);
});
afterAll(async () => {
  await browser?.close();
  await scene?.stop();
});

const address = (path: string): string => new URL(path, scene.console.url).href;

it("the overview puts first what needs a person", async () => {
  await page.getByText("Needs a person").waitFor();
  await page.getByText("1 needs review").waitFor();
  await picture("overview");
});

it("an operation stuck in UNKNOWN is found, and says that nobody knows and why", async () => {
  await page.getByRole("link", { name: "Operations", exact: true }).click();
  await page.getByTestId("search-box").fill(unknown);
  await page.getByTestId("search-submit").click();
  await page.getByText("Found by operation id").waitFor();
  await picture("operations");
  await page.getByTestId("operations-table").getByRole("link", { name: unknown }).click();
  expect(await page.getByTestId("answer").textContent()).toContain("Nobody knows yet");
  expect(await page.getByTestId("timeline").textContent()).toContain("IN_FLIGHT → UNKNOWN");
  await picture("operation");
});

it("a signer's address finds their operations, and stands in no address of the page", async () => {
  await page.goto(address("/t/acme/operations"));
  await page.getByTestId("search-box").fill("Signer@Example.com");
  await page.getByTestId("search-submit").click();
  await page.getByText("Found by signer").waitFor();
  await page.getByTestId("operations-table").getByRole("link", { name: review.id }).waitFor();
  expect(page.url()).not.toMatch(/signer/i);
  expect(await page.getByTestId("operations-table").textContent()).not.toMatch(/signer@/i);
});

it("signers are shown when an operator says why, and that is recorded", async () => {
  await page.goto(address(`/t/acme/operations/${unknown}`));
  await page.getByTestId("answer").waitFor();
  expect(await page.locator("main").textContent()).not.toContain("signer@example.com");
  await page.getByLabel(/Why do you need them/).fill("the customer called");
  await page.getByTestId("reveal").click();
  await page.getByText("signer@example.com").waitFor();
  await page.goto(address("/actions"));
  await page.getByText("the customer called").waitFor();
  await picture("actions");
});

it("a review with two matches is decided, and its VOID is planned as was said before the click", async () => {
  await page.goto(address("/t/acme/reviews"));
  await page.getByRole("link", { name: "needs review" }).first().click();
  const [keep, other] = review.refs;
  const card = page.getByTestId(`decision-keep-${keep}`);
  expect(await card.textContent()).toContain(`1 VOID will be planned, for ${other}.`);
  await card.click();
  await page.getByTestId("decision-why").fill("the customer signed the first");
  await picture("review");
  // No decision before the last attempt's quiescence: the page says so, and the same click is then taken.
  const planned = page.getByTestId("planned-void");
  await expect
    .poll(
      async () => {
        await page
          .getByTestId("decision-confirm")
          .click({ timeout: 1_000 })
          .catch(() => undefined);
        return await planned.count();
      },
      { timeout: 20_000, interval: 500 },
    )
    .toBe(1);
  await planned.click();
  await page.getByRole("heading", { name: /^VOID/ }).waitFor();
  const done = await getOperation(scene.fleet.scene.ledger, "acme", review.id);
  expect(done).toMatchObject({ state: "CONFIRMED", providerRef: keep });
  await picture("void");
});

it("a dead letter is replayed", async () => {
  await page.goto(address("/t/acme/dead-letters"));
  await page.getByRole("button", { name: /What would a replay/ }).click();
  await page.getByText("would wait").waitFor();
  await page.getByTestId("inbox-table").getByRole("link", { name: dead }).click();
  await page.getByTestId("replay").click();
  await page.getByText("Replayed: it is due again.").waitFor();
  await picture("event");
  expect(await scene.statusOf(dead)).toBe("RECEIVED");
});

it("Bull Board opens, and asks nobody outside", async () => {
  await page.goto(address("/t/acme/tickets"));
  await page.getByRole("heading", { name: "Tickets" }).waitFor();
  await picture("tickets");
  await page.getByTestId("nav-queues").click();
  await page.getByText("webhook-apply").first().waitFor();
  await picture("queues");
});

it("a viewer on a phone, in the dark, sees the same and is offered no act", async () => {
  const phone = await open(
    { viewport: { width: 360, height: 740 }, colorScheme: "dark", hasTouch: true },
    scene.viewerToken,
  );
  await phone.goto(address(`/t/acme/operations/${unknown}`));
  await phone.getByTestId("answer").waitFor();
  expect(await phone.getByTestId("reveal").count()).toBe(0);
  const wide = await phone.evaluate("document.documentElement.scrollWidth > window.innerWidth");
  expect(wide).toBe(false);
  if (images !== "") await phone.screenshot({ path: `${images}console-phone.png`, scale: "css" });
  await phone.goto(address(`/t/acme/inbox/${dead}`));
  await phone.getByText("An operator replays and discards.").waitFor();
  expect(await phone.getByTestId("replay").count()).toBe(0);
});

it("the keyboard alone logs in and reaches the pages", async () => {
  const keys = await (await browser.newContext()).newPage();
  await keys.goto(scene.console.url);
  await keys.getByTestId("login-token").waitFor();
  await keys.keyboard.press("Tab");
  await keys.keyboard.type(scene.viewerToken);
  await keys.keyboard.press("Enter");
  await keys.getByRole("heading", { name: "Overview" }).waitFor();
  await keys.keyboard.press("Tab");
  expect(await keys.evaluate("document.activeElement.textContent")).toBe("To the content");
});

it("no page asked another house for anything, or complained", () => {
  expect(foreign).toEqual([]);
  expect(complaints).toEqual([]);
});
