import { migrate, migrationState } from "@countersign/ledger";
import { migrateQueues } from "@countersign/queue";
import { commonConfig, loadConfig } from "@countersign/runtime";
import type { Command } from "commander";
import { z } from "zod";
import { type CommandTools, define } from "../define.js";

const shape = {
  DATABASE_URL: commonConfig.DATABASE_URL,
  REDIS_URL: commonConfig.REDIS_URL,
  QUEUE_DATABASE_URL: commonConfig.QUEUE_DATABASE_URL,
} as const;

/** `migrate`. */
export function addMigrate(program: Command, tools: CommandTools): void {
  define(program, tools, {
    name: "migrate",
    description: "Bring the database up to date: the ledger's tables and, without REDIS_URL, the queues' tables.",
    example: "countersign migrate",
    schema: z.object({}),
    run: async (_options, io) => {
      const config = loadConfig(shape, io.env, { name: "countersign" });
      await migrate(config.DATABASE_URL);
      const queues = config.REDIS_URL === undefined;
      if (queues) await migrateQueues(config.QUEUE_DATABASE_URL ?? config.DATABASE_URL);
      const { applied } = await migrationState(config.DATABASE_URL);
      return {
        value: { migrated: true, applied, queueTables: queues },
        text: `The ledger is up to date (${applied} migrations).${queues ? " So are the queues' tables." : ""}`,
      };
    },
  });
}
