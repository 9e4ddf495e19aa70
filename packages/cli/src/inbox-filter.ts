import { inboxStatuses } from "@countersign/ledger";
import type { Command } from "commander";
import { z } from "zod";
import { collect } from "./define.js";
import { connectionOption, endpointOption, instantOption } from "./options.js";

/** The conditions that `inbox` commands share; all that is left out matches. */
export const inboxFilterOptions = (command: Command): Command =>
  command
    .option("--status <status>", `${inboxStatuses.join(", ")}; may be repeated`, collect)
    .option("--connection <id>", "of this connection")
    .option("--endpoint <id>", "that came in here")
    .option("--type <type>", "of this type, as the provider names it")
    .option("--reason <reason>", "that stand as they do for this reason: unknown-type, unmapped-reference, …")
    .option("--reference <reference>", "about this request of the provider's")
    .option("--since <when>", "received at or after: 2h, 3d, or 2026-01-31T08:00:00Z")
    .option("--until <when>", "received before, given alike");

const text = z
  .string()
  .min(1, "must not be empty")
  .max(255, "must be at most 255 characters")
  .refine((value) => value.isWellFormed(), "must be text");

/** Their meaning. */
export const inboxFilterSchema = {
  status: z.array(z.enum(inboxStatuses, `must be one of ${inboxStatuses.join(", ")}`)).optional(),
  connection: connectionOption.optional(),
  endpoint: endpointOption.optional(),
  type: text.optional(),
  reason: text.optional(),
  reference: text.optional(),
  since: instantOption.optional(),
  until: instantOption.optional(),
};
