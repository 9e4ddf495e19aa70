import { webhookSchemes } from "./registry.js";
import type { WebhookScheme } from "./scheme.js";

const coveredInWords: Record<WebhookScheme["covers"], string> = {
  "time-and-body": "time of delivery, raw body",
  "id-time-and-body": "event id, time of delivery, raw body",
  body: "raw body",
  "event-time-and-type": "the event's time and type, *not the body*",
  nothing: "*nothing*",
};

const idInWords: Record<WebhookScheme["eventId"], string> = {
  "signed-header": "signed header",
  body: "`id` in the signed body",
  derived: "derived, weak",
};

/** The schemes as the table of `docs/providers/webhook-schemes.md`. */
export function schemeTable(): string {
  const rows = [...webhookSchemes.values()].map((scheme) => [
    `\`${scheme.name}\` (${scheme.title})`,
    headersInWords(scheme),
    coveredInWords[scheme.covers],
    scheme.toleranceMs === undefined ? "none" : `± ${scheme.toleranceMs / 1000} s`,
    idInWords[scheme.eventId],
    scheme.authentication,
    scheme.deduplication,
    scheme.acknowledgement === undefined ? "any 2xx" : `2xx with \`${scheme.acknowledgement.text}\``,
  ]);
  const head = ["scheme", "header", "covers", "time", "event id", "authentication", "deduplication", "acknowledgement"];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function headersInWords({ headers }: WebhookScheme): string {
  const [first, ...others] = headers.map((name) => `\`${name}\``);
  if (first === undefined) return "none: in the body";
  return headers.length > 8 ? `${first} … ${others.at(-1)}` : [first, ...others].join(", ");
}

/** What each derived id is made of, as the list of the same page. */
export function derivationList(): string {
  return [...webhookSchemes.values()]
    .flatMap(({ name, format }) => {
      const fields = format?.derivedFrom?.map((place) =>
        place.endsWith("?") ? `\`${place.slice(0, -1)}\` (null where it is missing)` : `\`${place}\``,
      );
      return fields === undefined ? [] : [`- \`${name}\`: ${[`\`"${name}"\``, ...fields].join(", ")}`];
    })
    .join("\n");
}
