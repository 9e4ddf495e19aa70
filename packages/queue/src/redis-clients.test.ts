import { describe, expect, it } from "vitest";
import { QueueSetupError } from "./errors.js";
import { parseRedisUrl } from "./redis-clients.js";

const node = (host: string, port: number) => ({ host, port });

describe("parseRedisUrl", () => {
  it.each([
    ["redis://localhost", { mode: "single", nodes: [node("localhost", 6379)], tls: false }],
    ["rediss://h:7000/2", { mode: "single", nodes: [node("h", 7000)], tls: true, db: 2 }],
    ["redis://[::1]:6380", { mode: "single", nodes: [node("::1", 6380)], tls: false }],
    ["redis://:p%40ss@h/", { mode: "single", nodes: [node("h", 6379)], tls: false, password: "p@ss" }],
    [
      "redis+sentinel://u:p@a,b:5000/primary?db=3",
      {
        mode: "sentinel",
        nodes: [node("a", 26_379), node("b", 5000)],
        tls: false,
        username: "u",
        password: "p",
        primary: "primary",
        db: 3,
      },
    ],
    ["rediss+cluster://a:1,b:2", { mode: "cluster", nodes: [node("a", 1), node("b", 2)], tls: true }],
  ])("reads %s", (url, address) => {
    expect(parseRedisUrl(url)).toEqual(address);
  });

  it.each([
    "http://h",
    "redis://",
    "redis://a,b",
    "redis://secret:secret@h/x",
    "redis+sentinel://secret@a",
    "redis://secret%zz@h",
    "redis://h:secret",
  ])("refuses %s with the forms it takes, and never repeats it", (url) => {
    const parse = () => parseRedisUrl(url);
    expect(parse).toThrow(QueueSetupError);
    expect(parse).toThrow(/^REDIS_URL .*redis\+sentinel:\/\/host,host\/name/);
    expect(parse).not.toThrow(/secret/);
  });
});
