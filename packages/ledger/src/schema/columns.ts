import { customType, timestamp } from "drizzle-orm/pg-core";

/** Bytes, as bytes: never hex text. */
export const bytea = customType<{ data: Buffer; driverData: Buffer }>({
  dataType: () => "bytea",
});

/** `timestamptz`, read as text: a JS Date would lose the microseconds that a comparison needs. */
export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "string" });
