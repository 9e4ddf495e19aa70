CREATE TABLE "near_miss" (
	"tenant_id" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"near_miss_id" uuid NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"kind" text NOT NULL,
	"attempt_no" integer NOT NULL,
	"actor" text NOT NULL,
	"details" jsonb,
	CONSTRAINT "near_miss_tenant_id_operation_id_near_miss_id_pk" PRIMARY KEY("tenant_id","operation_id","near_miss_id"),
	CONSTRAINT "near_miss_kind" CHECK ("near_miss"."kind" IN ('woke-after-lease','claim-lost','claim-gone','stale-verdict'))
);
--> statement-breakpoint
CREATE TABLE "connection_permit" (
	"tenant_id" text NOT NULL,
	"connection_id" text NOT NULL,
	"next_at" timestamp with time zone NOT NULL,
	CONSTRAINT "connection_permit_tenant_id_connection_id_pk" PRIMARY KEY("tenant_id","connection_id")
);
--> statement-breakpoint
CREATE TABLE "hold" (
	"tenant_id" text NOT NULL,
	"hold_id" uuid NOT NULL,
	"connection_id" text,
	"action" text,
	"held_by" text NOT NULL,
	"reason" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ends_at" timestamp with time zone,
	"released_at" timestamp with time zone,
	"released_by" text,
	CONSTRAINT "hold_tenant_id_hold_id_pk" PRIMARY KEY("tenant_id","hold_id"),
	CONSTRAINT "hold_action" CHECK ("hold"."action" IN ('SEND','VOID','RESEND','FINALIZE')),
	CONSTRAINT "hold_released_by" CHECK (("hold"."released_at" IS NULL) = ("hold"."released_by" IS NULL))
);
--> statement-breakpoint
CREATE TABLE "tenant_policy" (
	"tenant_id" text NOT NULL,
	"policy_id" uuid NOT NULL,
	"policy" text NOT NULL,
	"action" text NOT NULL,
	"connection_id" text,
	"written_by" text NOT NULL,
	"reason" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	"revoked_by" text,
	CONSTRAINT "tenant_policy_tenant_id_policy_id_pk" PRIMARY KEY("tenant_id","policy_id"),
	CONSTRAINT "tenant_policy_name" CHECK ("tenant_policy"."policy" IN ('treat-unprovable-as-done','accept-duplicate-and-void','accept-replay-risk')),
	CONSTRAINT "tenant_policy_action" CHECK ("tenant_policy"."action" IN ('SEND','VOID','RESEND','FINALIZE')),
	CONSTRAINT "tenant_policy_revoked_by" CHECK (("tenant_policy"."revoked_at" IS NULL) = ("tenant_policy"."revoked_by" IS NULL))
);
--> statement-breakpoint
ALTER TABLE "work_item" DROP CONSTRAINT "work_item_kind";--> statement-breakpoint
ALTER TABLE "contract_signing" DROP CONSTRAINT "signing_status";--> statement-breakpoint
ALTER TABLE "signing_operation" ADD COLUMN "lease_process" uuid;--> statement-breakpoint
ALTER TABLE "signing_operation" ADD COLUMN "doubtful" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "signing_operation" ADD COLUMN "replaying" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "signing_operation" ADD COLUMN "draft_ref" text;--> statement-breakpoint
ALTER TABLE "signing_operation" ADD COLUMN "looked_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "signing_operation" ADD COLUMN "archived_sha256" "bytea";--> statement-breakpoint
ALTER TABLE "work_item" ADD COLUMN "not_before" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "work_item" ADD COLUMN "dispatches" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "provider_connection" ADD COLUMN "rate_per_second" real;--> statement-breakpoint
ALTER TABLE "provider_connection" ADD COLUMN "circuit_failures" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "provider_connection" ADD COLUMN "circuit_opened_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "hold" ADD CONSTRAINT "hold_tenant_id_tenant_tenant_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenant"("tenant_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tenant_policy" ADD CONSTRAINT "tenant_policy_tenant_id_tenant_tenant_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenant"("tenant_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "hold_open" ON "hold" USING btree ("tenant_id") WHERE "hold"."released_at" IS NULL;--> statement-breakpoint
CREATE INDEX "tenant_policy_in_force" ON "tenant_policy" USING btree ("tenant_id","action") WHERE "tenant_policy"."revoked_at" IS NULL;--> statement-breakpoint
CREATE INDEX "signing_operation_lease_process" ON "signing_operation" USING btree ("lease_process") WHERE "signing_operation"."lease_process" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "ticket_subject" ON "ticket" USING btree ("tenant_id","subject_id");--> statement-breakpoint
ALTER TABLE "work_item" ADD CONSTRAINT "work_item_owner_has_lease" CHECK (("work_item"."lease_owner" IS NOT NULL) = ("work_item"."lease_expires_at" IS NOT NULL));--> statement-breakpoint
ALTER TABLE "work_item" ADD CONSTRAINT "work_item_kind" CHECK ("work_item"."kind" IN ('audit','poll','notify','probe','policy'));--> statement-breakpoint
ALTER TABLE "provider_connection" ADD CONSTRAINT "connection_rate" CHECK ("provider_connection"."rate_per_second" IS NULL OR "provider_connection"."rate_per_second" > 0);--> statement-breakpoint
-- Tenants made before thresholds were required get the defaults; what they had named stays.
UPDATE "tenant" SET "thresholds" = '{"needs-review":240,"duplicate":240,"quarantine":240,"dead-letter":60,"aged":60,"connection-paused":30,"signing-conflict":240,"void-retired":1440,"age-unknown":30,"age-planned":60,"age-waiting":1440,"age-declined":60,"age-attempts":10}'::jsonb || "thresholds";--> statement-breakpoint
ALTER TABLE "tenant" ADD CONSTRAINT "tenant_has_every_threshold" CHECK ("tenant"."thresholds" ?& ARRAY['needs-review','duplicate','quarantine','dead-letter','aged','connection-paused','signing-conflict','void-retired','age-unknown','age-planned','age-waiting','age-declined','age-attempts']);--> statement-breakpoint
ALTER TABLE "contract_signing" ADD CONSTRAINT "signing_status" CHECK ("contract_signing"."status" IN ('STAGED','SENT','VIEWED','PARTIALLY_SIGNED','COMPLETED','DECLINED','VOIDED','EXPIRED','DISCARDED'));