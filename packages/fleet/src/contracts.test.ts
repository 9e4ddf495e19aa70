import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { providerByName } from "@countersign/provider";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ContractsError, readContracts, repeatAsRevisions } from "./contracts.js";

const provider = providerByName("wesign");
if (provider === undefined) throw new Error("no adapter");
const examples = fileURLToPath(new URL("../../../examples/contracts.jsonl", import.meta.url));

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "countersign-contracts-"));
  await mkdir(join(folder, "pdf"));
  await writeFile(join(folder, "pdf", "a.pdf"), "%PDF-1.4 a");
  await writeFile(join(folder, "pdf", "not.pdf"), "PK a spreadsheet");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const signer = { email: "signer@example.com", role: "customer", order: 1 };
const good = { intent: "contract-1-rev-1", document: "pdf/a.pdf", signers: [signer] };

async function read(...lines: (object | string)[]) {
  const file = join(folder, "contracts.jsonl");
  await writeFile(file, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
  return await readContracts(file, provider ?? expect.fail());
}

async function refusal(...lines: (object | string)[]): Promise<ContractsError> {
  try {
    await read(...lines);
  } catch (error) {
    if (error instanceof ContractsError) return error;
    throw error;
  }
  return expect.fail("the file was accepted");
}

describe("a contracts file", () => {
  it("is read with documents relative to itself, empty lines skipped", async () => {
    const [contract, ...others] = await read(good, "", "  ");
    expect(others).toEqual([]);
    expect(contract?.document.toString()).toBe("%PDF-1.4 a");
    expect(contract?.payload).toMatchObject({ documents: [{ fileName: "a.pdf" }], signers: [signer] });
  });

  it("of the examples can be sent, every line", async () => {
    expect(await readContracts(examples, provider)).toHaveLength(24);
  });

  it.each<[string, object | string, string | undefined, RegExp]>([
    ["text that is not JSON", "{", undefined, /not one JSON value.*one JSON object/],
    ["a member twice", '{"intent":"a","intent":"b"}', undefined, /twice/],
    ["no object", "[]", undefined, /object/],
    ["no intent", { ...good, intent: undefined }, "intent", /./],
    ["an intent key of ours", { ...good, intent: "cs:void:1" }, "intent", /cs:/],
    ["no document", { ...good, document: undefined }, "document", /path of a PDF/],
    ["a document that is not there", { ...good, document: "pdf/b.pdf" }, "document", /ENOENT.*relative to/],
    ["a document that is no PDF", { ...good, document: "pdf/not.pdf" }, "document", /%PDF-/],
    ["no signer", { ...good, signers: [] }, "signers", /./],
    [
      "an address with a line break",
      { ...good, signers: [{ ...signer, email: "a@example.com\nBcc: b@example.com" }] },
      "signers.0.email",
      /control/,
    ],
    ["a misspelt field", { ...good, expiryInDays: 3 }, "expiryInDays", /not a field/],
    ["a misspelt field of a signer", { ...good, signers: [{ ...signer, mail: "x" }] }, "signers.0.mail", /not a field/],
    ["what the provider cannot send", { ...good, message: "Please sign" }, "message", /takes no message.*take it out/],
    ["documents by digest", { ...good, documents: [] }, "documents", /document/],
  ])("with %s is refused by line and field, with a remedy", async (_what, line, field, problem) => {
    const error = await refusal({ ...good, intent: "first" }, line);
    expect([error.line, error.field]).toEqual([2, field]);
    expect(error.message).toContain("contracts.jsonl, line 2");
    expect(error.message).toMatch(problem);
    expect(error.message).not.toMatch(/example\.com|Please sign/);
  });

  it("with the same intent twice names both lines", async () => {
    const error = await refusal(good, good);
    expect(error.message).toMatch(/line 2, intent: is the same as on line 1/);
  });

  it("without any contract, or not there, says so", async () => {
    expect((await refusal("\n")).message).toMatch(/no contract/);
    await expect(readContracts(join(folder, "none.jsonl"), provider)).rejects.toThrow(
      /none\.jsonl: cannot be read \(ENOENT\)/,
    );
  });
});

describe("contracts repeated as revisions", () => {
  it("keep their order, and each has an intent key of its own", async () => {
    const contracts = await read(good, { ...good, intent: "contract-1-rev-2" }, { ...good, intent: "order 7" });
    expect(repeatAsRevisions(contracts, 8).map(({ intent }) => intent)).toEqual([
      "contract-1-rev-1",
      "contract-1-rev-2",
      "order 7",
      "contract-1-rev-3",
      "contract-1-rev-4",
      "order 7-rev-2",
      "contract-1-rev-5",
      "contract-1-rev-6",
    ]);
  });

  it("are fewer when fewer are wanted", async () => {
    expect(repeatAsRevisions(await read(good, { ...good, intent: "b" }), 1)).toHaveLength(1);
  });
});
