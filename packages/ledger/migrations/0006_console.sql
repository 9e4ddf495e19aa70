CREATE TABLE "console_action" (
	"action_id" uuid PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"operator_id" uuid NOT NULL,
	"operator" text NOT NULL,
	"role" text NOT NULL,
	"tenant_id" text,
	"action" text NOT NULL,
	"subject_id" text,
	"why" text,
	"status" integer,
	"finished_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "console_operator" (
	"operator_id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"role" text NOT NULL,
	"tenants" text[],
	"token_hash" "bytea" NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "console_operator_token" UNIQUE("token_hash"),
	CONSTRAINT "console_operator_role" CHECK ("console_operator"."role" IN ('viewer','operator')),
	CONSTRAINT "console_operator_name" CHECK ("console_operator"."name" ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$')
);
--> statement-breakpoint
CREATE TABLE "erasure" (
	"tenant_id" text NOT NULL,
	"erasure_id" uuid NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"kind" text NOT NULL,
	"who" text NOT NULL,
	"why" text NOT NULL,
	"counts" jsonb NOT NULL,
	CONSTRAINT "erasure_tenant_id_erasure_id_pk" PRIMARY KEY("tenant_id","erasure_id"),
	CONSTRAINT "erasure_kind" CHECK ("erasure"."kind" IN ('retention','person'))
);
--> statement-breakpoint
CREATE TABLE "legal_hold" (
	"tenant_id" text NOT NULL,
	"legal_hold_id" uuid NOT NULL,
	"operation_id" uuid,
	"placed_by" text NOT NULL,
	"reason" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"released_at" timestamp with time zone,
	"released_by" text,
	"release_reason" text,
	CONSTRAINT "legal_hold_tenant_id_legal_hold_id_pk" PRIMARY KEY("tenant_id","legal_hold_id"),
	CONSTRAINT "legal_hold_released_by" CHECK (("legal_hold"."released_at" IS NULL) = ("legal_hold"."released_by" IS NULL) AND ("legal_hold"."released_at" IS NULL) = ("legal_hold"."release_reason" IS NULL))
);
--> statement-breakpoint
CREATE TABLE "operation_subject" (
	"tenant_id" text NOT NULL,
	"kind" text NOT NULL,
	"token" "bytea" NOT NULL,
	"operation_id" uuid NOT NULL,
	CONSTRAINT "operation_subject_tenant_id_kind_token_operation_id_pk" PRIMARY KEY("tenant_id","kind","token","operation_id"),
	CONSTRAINT "operation_subject_kind" CHECK ("operation_subject"."kind" IN ('signer','document')),
	CONSTRAINT "operation_subject_token" CHECK (octet_length("operation_subject"."token") = 32)
);
--> statement-breakpoint
CREATE TABLE "tally_mark" (
	"id" integer PRIMARY KEY NOT NULL,
	"folded_until" timestamp with time zone NOT NULL,
	CONSTRAINT "tally_mark_one" CHECK ("tally_mark"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "tally_minute" (
	"tenant_id" text NOT NULL,
	"connection_id" text NOT NULL,
	"minute" timestamp with time zone NOT NULL,
	"action" text NOT NULL,
	"from_state" text NOT NULL,
	"to_state" text NOT NULL,
	"count" integer NOT NULL,
	"ms_sum" bigint NOT NULL,
	"ms_max" bigint NOT NULL,
	CONSTRAINT "tally_minute_minute_tenant_id_connection_id_action_from_state_to_state_pk" PRIMARY KEY("minute","tenant_id","connection_id","action","from_state","to_state"),
	CONSTRAINT "tally_minute_whole" CHECK ("tally_minute"."minute" = date_trunc('minute', "tally_minute"."minute"))
);
--> statement-breakpoint
CREATE TABLE "tally_total" (
	"tenant_id" text NOT NULL,
	"connection_id" text NOT NULL,
	"action" text NOT NULL,
	"to_state" text NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "tally_total_tenant_id_connection_id_action_to_state_pk" PRIMARY KEY("tenant_id","connection_id","action","to_state")
);
--> statement-breakpoint
DROP INDEX "signing_operation_state";--> statement-breakpoint
DROP INDEX "webhook_inbox_unbound";--> statement-breakpoint
ALTER TABLE "document" ADD COLUMN "erased_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "legal_hold" ADD CONSTRAINT "legal_hold_tenant_id_tenant_tenant_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenant"("tenant_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "console_action_newest" ON "console_action" USING btree ("tenant_id","action_id");--> statement-breakpoint
CREATE INDEX "console_action_subject" ON "console_action" USING btree ("tenant_id","subject_id") WHERE "console_action"."subject_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "legal_hold_open" ON "legal_hold" USING btree ("tenant_id","operation_id") WHERE "legal_hold"."released_at" IS NULL;--> statement-breakpoint
CREATE INDEX "approved_payload_kept" ON "approved_payload" USING btree ("tenant_id","operation_id") WHERE "approved_payload"."payload" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "document_kept" ON "document" USING btree ("tenant_id","created_at") WHERE "document"."bytes" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "operation_event_at" ON "operation_event" USING brin ("at") WITH (pages_per_range=32,autosummarize=true);--> statement-breakpoint
CREATE INDEX "signing_operation_filter" ON "signing_operation" USING btree ("tenant_id","connection_id","action","state","operation_id");--> statement-breakpoint
CREATE INDEX "signing_operation_code" ON "signing_operation" USING btree ("tenant_id",("last_observation" ->> 'code'),"operation_id") WHERE "signing_operation"."last_observation" ->> 'code' IS NOT NULL;--> statement-breakpoint
CREATE INDEX "webhook_inbox_ref" ON "webhook_inbox" USING btree ("tenant_id","connection_id","provider_ref") WHERE "webhook_inbox"."provider_ref" IS NOT NULL;--> statement-breakpoint
ALTER TABLE "document" ADD CONSTRAINT "document_erased_whole" CHECK (("document"."bytes" IS NULL) = ("document"."erased_at" IS NOT NULL));