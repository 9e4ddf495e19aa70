import { expect, it } from "vitest";
import { GroupCommit } from "./group-commit.js";

interface Call {
  items: readonly number[];
  finish(error?: Error): void;
}

function scene(options: { parallel?: number; most?: number; perhapsOneItem?: boolean } = {}) {
  const calls: Call[] = [];
  const commits = new GroupCommit<number, string>({
    store: (items) =>
      new Promise((resolve, reject) => {
        calls.push({
          items,
          finish: (error) => (error === undefined ? resolve(items.map((item) => `#${item}`)) : reject(error)),
        });
      }),
    perhapsOneItem: () => options.perhapsOneItem ?? false,
    parallel: options.parallel ?? 1,
    weigh: (item) => item,
    most: options.most ?? 100,
  });
  return { calls, commits };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

it("what finds a free place is stored at once and alone; what comes meanwhile shares the next commit", async () => {
  const { calls, commits } = scene();
  const all = Promise.all([1, 2, 3].map((item) => commits.add(item)));
  expect(calls.map(({ items }) => items)).toEqual([[1]]);
  calls[0]?.finish();
  await settled();
  expect(calls.map(({ items }) => items)).toEqual([[1], [2, 3]]);
  calls[1]?.finish();
  expect(await all).toEqual(["#1", "#2", "#3"]);
});

it("nothing is answered before its own commit", async () => {
  const { calls, commits } = scene({ parallel: 2 });
  const answered: string[] = [];
  const all = [1, 2].map((item) => commits.add(item).then((answer) => answered.push(answer)));
  calls[1]?.finish();
  await settled();
  expect(answered).toEqual(["#2"]);
  calls[0]?.finish();
  await Promise.all(all);
});

it("a commit carries at most its weight; a heavier item goes alone", async () => {
  const { calls, commits } = scene({ most: 5 });
  const all = Promise.all([1, 3, 2, 9, 1].map((item) => commits.add(item)));
  for (let n = 0; n < 4; n += 1) {
    calls[n]?.finish();
    await settled();
  }
  expect(calls.map(({ items }) => items)).toEqual([[1], [3, 2], [9], [1]]);
  await all;
});

it("an item that can't be stored fails alone; an outage fails all, each told so", async () => {
  const one = scene({ perhapsOneItem: true });
  const mixed = Promise.allSettled([1, 2, 3].map((item) => one.commits.add(item)));
  one.calls[0]?.finish();
  await settled();
  one.calls[1]?.finish(new Error("bad data"));
  await settled();
  one.calls[2]?.finish(new Error("bad data"));
  await settled();
  one.calls[3]?.finish();
  expect((await mixed).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  const gone = scene();
  const all = Promise.allSettled([1, 2, 3].map((item) => gone.commits.add(item)));
  gone.calls[0]?.finish(new Error("gone"));
  await settled();
  gone.calls[1]?.finish(new Error("gone"));
  expect((await all).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  // And the next is tried again.
  const next = gone.commits.add(4);
  await settled();
  gone.calls[2]?.finish();
  expect(await next).toBe("#4");
});
