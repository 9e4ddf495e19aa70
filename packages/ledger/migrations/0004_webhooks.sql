ALTER TABLE "tenant" DROP CONSTRAINT "tenant_owns_every_ticket_kind";--> statement-breakpoint
ALTER TABLE "tenant" DROP CONSTRAINT "tenant_has_every_threshold";--> statement-breakpoint
ALTER TABLE "webhook_endpoint" ADD COLUMN "gzip" text;--> statement-breakpoint
ALTER TABLE "webhook_endpoint" ADD COLUMN "suspect_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "webhook_secret" ADD COLUMN "last_verified_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "contract_signing" ADD COLUMN "asked_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_inbox" ADD COLUMN "hint" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_inbox" ADD COLUMN "replays" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_inbox" ADD COLUMN "replayed_by" text;--> statement-breakpoint
ALTER TABLE "webhook_inbox" ADD COLUMN "discarded_by" text;--> statement-breakpoint
ALTER TABLE "webhook_inbox" ADD COLUMN "discard_reason" text;--> statement-breakpoint
CREATE INDEX "webhook_endpoint_connection" ON "webhook_endpoint" USING btree ("tenant_id","connection_id");--> statement-breakpoint
CREATE INDEX "contract_signing_asked" ON "contract_signing" USING btree ("asked_at") WHERE "contract_signing"."status" IN ('STAGED','SENT','VIEWED','PARTIALLY_SIGNED');--> statement-breakpoint
CREATE INDEX "webhook_inbox_open" ON "webhook_inbox" USING btree ("tenant_id","inbox_id") WHERE "webhook_inbox"."status" IN ('QUARANTINED','DEAD','CONFLICT');--> statement-breakpoint
-- Tenants made before get the team that looks at what can't be interpreted, and the default clocks; what they had named stays.
UPDATE "tenant" SET "ticket_owners" = jsonb_build_object('endpoint-silent', "ticket_owners" ->> 'quarantine') || "ticket_owners",
  "thresholds" = '{"endpoint-silent":60,"age-received":15,"age-endpoint":60}'::jsonb || "thresholds";--> statement-breakpoint
ALTER TABLE "tenant" ADD CONSTRAINT "tenant_owns_every_ticket_kind" CHECK ("tenant"."ticket_owners" ?& ARRAY['needs-review','duplicate','quarantine','dead-letter','aged','connection-paused','signing-conflict','void-retired','endpoint-silent']);--> statement-breakpoint
ALTER TABLE "tenant" ADD CONSTRAINT "tenant_has_every_threshold" CHECK ("tenant"."thresholds" ?& ARRAY['needs-review','duplicate','quarantine','dead-letter','aged','connection-paused','signing-conflict','void-retired','endpoint-silent','age-unknown','age-planned','age-waiting','age-declined','age-attempts','age-received','age-endpoint']);--> statement-breakpoint
ALTER TABLE "webhook_endpoint" ADD CONSTRAINT "endpoint_gzip" CHECK ("webhook_endpoint"."gzip" IN ('content','wire'));--> statement-breakpoint
ALTER TABLE "webhook_inbox" ADD CONSTRAINT "inbox_discarded_by_somebody" CHECK (("webhook_inbox"."status" = 'DISCARDED') = ("webhook_inbox"."discarded_by" IS NOT NULL AND "webhook_inbox"."discard_reason" IS NOT NULL));