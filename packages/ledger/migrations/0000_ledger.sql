CREATE TABLE "approved_payload" (
	"tenant_id" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"schema_version" integer NOT NULL,
	"payload" "bytea",
	"request" "bytea",
	"body_digest" "bytea" NOT NULL,
	"key_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"erased_at" timestamp with time zone,
	CONSTRAINT "approved_payload_tenant_id_operation_id_pk" PRIMARY KEY("tenant_id","operation_id"),
	CONSTRAINT "payload_digest_length" CHECK (octet_length("approved_payload"."body_digest") = 32),
	CONSTRAINT "payload_erased_whole" CHECK (("approved_payload"."payload" IS NULL) = ("approved_payload"."erased_at" IS NOT NULL))
);
--> statement-breakpoint
CREATE TABLE "document" (
	"tenant_id" text NOT NULL,
	"sha256" "bytea" NOT NULL,
	"size" integer NOT NULL,
	"bytes" "bytea",
	"key_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "document_tenant_id_sha256_pk" PRIMARY KEY("tenant_id","sha256"),
	CONSTRAINT "document_digest_length" CHECK (octet_length("document"."sha256") = 32)
);
--> statement-breakpoint
CREATE TABLE "operation_dependency" (
	"tenant_id" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"depends_on_operation_id" uuid NOT NULL,
	"relation" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"resolved_at" timestamp with time zone,
	CONSTRAINT "operation_dependency_tenant_id_operation_id_depends_on_operation_id_pk" PRIMARY KEY("tenant_id","operation_id","depends_on_operation_id"),
	CONSTRAINT "dependency_relation" CHECK ("operation_dependency"."relation" IN ('target','void-first','send-first')),
	CONSTRAINT "dependency_not_self" CHECK ("operation_dependency"."operation_id" <> "operation_dependency"."depends_on_operation_id")
);
--> statement-breakpoint
CREATE TABLE "operation_event" (
	"tenant_id" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"seq" integer NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"kind" text NOT NULL,
	"from_state" text,
	"to_state" text,
	"reason" text NOT NULL,
	"actor" text NOT NULL,
	"attempt_no" integer NOT NULL,
	"evidence" jsonb,
	CONSTRAINT "operation_event_tenant_id_operation_id_seq_at_pk" PRIMARY KEY("tenant_id","operation_id","seq","at")
);
--> statement-breakpoint
CREATE TABLE "operation_reference" (
	"tenant_id" text NOT NULL,
	"connection_id" text NOT NULL,
	"provider_ref" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"role" text NOT NULL,
	"source" text NOT NULL,
	"attempt_no" integer NOT NULL,
	"seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "operation_reference_tenant_id_connection_id_provider_ref_pk" PRIMARY KEY("tenant_id","connection_id","provider_ref"),
	CONSTRAINT "reference_role" CHECK ("operation_reference"."role" IN ('kept','extra','draft','evidence'))
);
--> statement-breakpoint
CREATE TABLE "signing_operation" (
	"tenant_id" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"intent_key" text NOT NULL,
	"action" text NOT NULL,
	"connection_id" text NOT NULL,
	"payload_hash" "bytea" NOT NULL,
	"schema_version" integer NOT NULL,
	"hash_parts" jsonb NOT NULL,
	"provider_key" uuid NOT NULL,
	"provider_ref" text,
	"state" text NOT NULL,
	"reason" text NOT NULL,
	"attempt_no" integer DEFAULT 0 NOT NULL,
	"lease_owner" uuid,
	"lease_expires_at" timestamp with time zone,
	"due_at" timestamp with time zone,
	"not_before" timestamp with time zone,
	"dispatches" integer DEFAULT 0 NOT NULL,
	"send_before" timestamp with time zone,
	"quiet_from" timestamp with time zone,
	"evidence_no" integer DEFAULT 0 NOT NULL,
	"event_no" integer DEFAULT 1 NOT NULL,
	"open_attempts" integer DEFAULT 0 NOT NULL,
	"references_seen" integer DEFAULT 0 NOT NULL,
	"absence_count" integer DEFAULT 0 NOT NULL,
	"absence_began_at" timestamp with time zone,
	"proof_seq" integer,
	"open_dependencies" integer DEFAULT 0 NOT NULL,
	"dependants" integer DEFAULT 0 NOT NULL,
	"supersedes" uuid,
	"supersede_mode" text,
	"superseded_by" uuid,
	"target_superseded" boolean DEFAULT false NOT NULL,
	"target_operation_id" uuid,
	"target_ref" text,
	"basis" text,
	"cause" text,
	"first_attempt_at" timestamp with time zone,
	"last_observation" jsonb,
	"requested_by" text,
	"approved_by" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"finished_at" timestamp with time zone,
	CONSTRAINT "signing_operation_tenant_id_operation_id_pk" PRIMARY KEY("tenant_id","operation_id"),
	CONSTRAINT "signing_operation_intent" UNIQUE("tenant_id","intent_key"),
	CONSTRAINT "operation_action" CHECK ("signing_operation"."action" IN ('SEND','VOID','RESEND','FINALIZE')),
	CONSTRAINT "operation_state" CHECK ("signing_operation"."state" IN ('PLANNED','IN_FLIGHT','UNKNOWN','RECONCILING','NEEDS_REVIEW','CONFIRMED','TERMINAL_FAILED','SUPERSEDED')),
	CONSTRAINT "operation_intent_key" CHECK ("signing_operation"."intent_key" ~ '^[\x20-\x7e]{1,255}$'),
	CONSTRAINT "operation_hash_length" CHECK (octet_length("signing_operation"."payload_hash") = 32),
	CONSTRAINT "operation_ref_exactly_when_confirmed" CHECK (("signing_operation"."provider_ref" IS NOT NULL) = ("signing_operation"."state" = 'CONFIRMED')),
	CONSTRAINT "operation_owner_exactly_when_leased" CHECK (("signing_operation"."lease_owner" IS NOT NULL) = ("signing_operation"."state" IN ('IN_FLIGHT','RECONCILING'))),
	CONSTRAINT "operation_lease_has_expiry" CHECK (("signing_operation"."lease_owner" IS NOT NULL) = ("signing_operation"."lease_expires_at" IS NOT NULL)),
	CONSTRAINT "operation_live_rows_are_due" CHECK (("signing_operation"."state" IN ('PLANNED','UNKNOWN','IN_FLIGHT','RECONCILING') AND ("signing_operation"."state" <> 'PLANNED' OR "signing_operation"."open_dependencies" = 0)) = ("signing_operation"."due_at" IS NOT NULL)),
	CONSTRAINT "operation_attempted_has_first" CHECK (("signing_operation"."attempt_no" > 0) = ("signing_operation"."first_attempt_at" IS NOT NULL)),
	CONSTRAINT "operation_attempted_has_quiet_from" CHECK ("signing_operation"."attempt_no" = 0 OR "signing_operation"."quiet_from" IS NOT NULL),
	CONSTRAINT "operation_replanned_has_proof" CHECK ("signing_operation"."state" <> 'PLANNED' OR "signing_operation"."attempt_no" = 0 OR "signing_operation"."proof_seq" IS NOT NULL),
	CONSTRAINT "operation_counts" CHECK ("signing_operation"."attempt_no" >= 0 AND "signing_operation"."open_attempts" BETWEEN 0 AND "signing_operation"."attempt_no" AND "signing_operation"."open_dependencies" >= 0 AND "signing_operation"."dependants" >= 0),
	CONSTRAINT "operation_sent_target_is_bound" CHECK ("signing_operation"."state" <> 'IN_FLIGHT' OR "signing_operation"."action" = 'SEND' OR "signing_operation"."target_ref" IS NOT NULL),
	CONSTRAINT "operation_finished" CHECK (("signing_operation"."state" IN ('CONFIRMED','TERMINAL_FAILED','SUPERSEDED')) = ("signing_operation"."finished_at" IS NOT NULL))
);
--> statement-breakpoint
CREATE TABLE "ticket" (
	"tenant_id" text NOT NULL,
	"ticket_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"subject_kind" text NOT NULL,
	"subject_id" text NOT NULL,
	"owner" text NOT NULL,
	"reason" text NOT NULL,
	"details" jsonb,
	"opened_at" timestamp with time zone DEFAULT now() NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	"resolved_at" timestamp with time zone,
	"resolution" text,
	"resolved_by" text,
	CONSTRAINT "ticket_tenant_id_ticket_id_pk" PRIMARY KEY("tenant_id","ticket_id"),
	CONSTRAINT "ticket_closed_with_resolution" CHECK (("ticket"."resolved_at" IS NULL) = ("ticket"."resolution" IS NULL) AND ("ticket"."resolved_at" IS NULL) = ("ticket"."resolved_by" IS NULL))
);
--> statement-breakpoint
CREATE TABLE "work_item" (
	"tenant_id" text NOT NULL,
	"work_item_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"dedupe_key" text NOT NULL,
	"subject_id" text NOT NULL,
	"run_after" timestamp with time zone NOT NULL,
	"lease_owner" uuid,
	"lease_expires_at" timestamp with time zone,
	"attempts" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "work_item_tenant_id_work_item_id_pk" PRIMARY KEY("tenant_id","work_item_id"),
	CONSTRAINT "work_item_dedupe" UNIQUE("tenant_id","kind","dedupe_key"),
	CONSTRAINT "work_item_kind" CHECK ("work_item"."kind" IN ('audit','poll','notify'))
);
--> statement-breakpoint
CREATE TABLE "api_key" (
	"tenant_id" text NOT NULL,
	"key_id" uuid NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"name" text NOT NULL,
	"scopes" text[] NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "api_key_tenant_id_key_id_pk" PRIMARY KEY("tenant_id","key_id"),
	CONSTRAINT "api_key_hash" UNIQUE("key_hash")
);
--> statement-breakpoint
CREATE TABLE "provider_connection" (
	"tenant_id" text NOT NULL,
	"connection_id" text NOT NULL,
	"provider" text NOT NULL,
	"base_url" text NOT NULL,
	"credential" "bytea" NOT NULL,
	"key_id" text NOT NULL,
	"is_default" boolean DEFAULT false NOT NULL,
	"metadata_lookup" boolean DEFAULT true NOT NULL,
	"lookup_verified_at" timestamp with time zone,
	"lookup_verification" jsonb,
	"paused_until" timestamp with time zone,
	"pause_reason" text,
	"held_at" timestamp with time zone,
	"held_by" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "provider_connection_tenant_id_connection_id_pk" PRIMARY KEY("tenant_id","connection_id"),
	CONSTRAINT "connection_id_form" CHECK ("provider_connection"."connection_id" ~ '^[a-z0-9][a-z0-9_-]{0,62}$')
);
--> statement-breakpoint
CREATE TABLE "tenant" (
	"tenant_id" text PRIMARY KEY NOT NULL,
	"ticket_owners" jsonb NOT NULL,
	"thresholds" jsonb NOT NULL,
	"data_key" "bytea" NOT NULL,
	"key_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "tenant_id_form" CHECK ("tenant"."tenant_id" ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
	CONSTRAINT "tenant_owns_every_ticket_kind" CHECK ("tenant"."ticket_owners" ?& ARRAY['needs-review','duplicate','quarantine','dead-letter','aged','connection-paused','signing-conflict','void-retired'])
);
--> statement-breakpoint
CREATE TABLE "webhook_endpoint" (
	"endpoint_id" text PRIMARY KEY NOT NULL,
	"tenant_id" text NOT NULL,
	"connection_id" text NOT NULL,
	"scheme" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"disabled_at" timestamp with time zone,
	"last_verified_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "webhook_secret" (
	"endpoint_id" text NOT NULL,
	"secret_id" uuid NOT NULL,
	"secret" "bytea" NOT NULL,
	"key_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"retired_at" timestamp with time zone,
	CONSTRAINT "webhook_secret_endpoint_id_secret_id_pk" PRIMARY KEY("endpoint_id","secret_id")
);
--> statement-breakpoint
CREATE TABLE "worker_process" (
	"process_id" uuid PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"host" text NOT NULL,
	"pid" integer NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"heartbeat_at" timestamp with time zone DEFAULT now() NOT NULL,
	"stopped_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "contract_signing" (
	"tenant_id" text NOT NULL,
	"connection_id" text NOT NULL,
	"provider_ref" text NOT NULL,
	"operation_id" uuid,
	"status" text,
	"status_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "contract_signing_tenant_id_connection_id_provider_ref_pk" PRIMARY KEY("tenant_id","connection_id","provider_ref"),
	CONSTRAINT "signing_status" CHECK ("contract_signing"."status" IN ('STAGED','SENT','VIEWED','PARTIALLY_SIGNED','COMPLETED','DECLINED','VOIDED','EXPIRED')),
	CONSTRAINT "signing_status_needs_operation" CHECK ("contract_signing"."status" IS NULL OR "contract_signing"."operation_id" IS NOT NULL)
);
--> statement-breakpoint
CREATE TABLE "webhook_body" (
	"tenant_id" text NOT NULL,
	"inbox_id" uuid NOT NULL,
	"received_at" timestamp with time zone NOT NULL,
	"bytes" "bytea" NOT NULL,
	"key_id" text NOT NULL,
	CONSTRAINT "webhook_body_tenant_id_inbox_id_received_at_pk" PRIMARY KEY("tenant_id","inbox_id","received_at")
);
--> statement-breakpoint
CREATE TABLE "webhook_inbox" (
	"tenant_id" text NOT NULL,
	"inbox_id" uuid NOT NULL,
	"received_at" timestamp with time zone NOT NULL,
	"connection_id" text NOT NULL,
	"endpoint_id" text NOT NULL,
	"provider_event_id" text NOT NULL,
	"body_sha256" "bytea" NOT NULL,
	"status" text NOT NULL,
	"event_type" text,
	"provider_ref" text,
	"operation_id" uuid,
	"conflicting" boolean DEFAULT false NOT NULL,
	"weak_id" boolean DEFAULT false NOT NULL,
	"due_at" timestamp with time zone,
	"dispatches" integer DEFAULT 0 NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"wait_until" timestamp with time zone,
	"outcome" text,
	"applied_at" timestamp with time zone,
	CONSTRAINT "webhook_inbox_tenant_id_inbox_id_received_at_pk" PRIMARY KEY("tenant_id","inbox_id","received_at"),
	CONSTRAINT "webhook_inbox_event" UNIQUE("tenant_id","connection_id","provider_event_id","body_sha256"),
	CONSTRAINT "inbox_status" CHECK ("webhook_inbox"."status" IN ('RECEIVED','WAITING','APPLIED','NO_OP','CONFLICT','QUARANTINED','DEAD','DISCARDED')),
	CONSTRAINT "inbox_live_rows_are_due" CHECK (("webhook_inbox"."status" IN ('RECEIVED','WAITING')) = ("webhook_inbox"."due_at" IS NOT NULL))
);
--> statement-breakpoint
ALTER TABLE "approved_payload" ADD CONSTRAINT "approved_payload_tenant_id_operation_id_signing_operation_tenant_id_operation_id_fk" FOREIGN KEY ("tenant_id","operation_id") REFERENCES "public"."signing_operation"("tenant_id","operation_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "operation_dependency" ADD CONSTRAINT "operation_dependency_tenant_id_operation_id_signing_operation_tenant_id_operation_id_fk" FOREIGN KEY ("tenant_id","operation_id") REFERENCES "public"."signing_operation"("tenant_id","operation_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "operation_dependency" ADD CONSTRAINT "operation_dependency_tenant_id_depends_on_operation_id_signing_operation_tenant_id_operation_id_fk" FOREIGN KEY ("tenant_id","depends_on_operation_id") REFERENCES "public"."signing_operation"("tenant_id","operation_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "operation_reference" ADD CONSTRAINT "operation_reference_tenant_id_operation_id_signing_operation_tenant_id_operation_id_fk" FOREIGN KEY ("tenant_id","operation_id") REFERENCES "public"."signing_operation"("tenant_id","operation_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "signing_operation" ADD CONSTRAINT "signing_operation_tenant_id_target_operation_id_signing_operation_tenant_id_operation_id_fk" FOREIGN KEY ("tenant_id","target_operation_id") REFERENCES "public"."signing_operation"("tenant_id","operation_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_tenant_id_tenant_tenant_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenant"("tenant_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "provider_connection" ADD CONSTRAINT "provider_connection_tenant_id_tenant_tenant_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenant"("tenant_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_endpoint" ADD CONSTRAINT "webhook_endpoint_tenant_id_connection_id_provider_connection_tenant_id_connection_id_fk" FOREIGN KEY ("tenant_id","connection_id") REFERENCES "public"."provider_connection"("tenant_id","connection_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_secret" ADD CONSTRAINT "webhook_secret_endpoint_id_webhook_endpoint_endpoint_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."webhook_endpoint"("endpoint_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "operation_dependency_waiters" ON "operation_dependency" USING btree ("tenant_id","depends_on_operation_id") WHERE "operation_dependency"."resolved_at" IS NULL;--> statement-breakpoint
CREATE INDEX "operation_reference_operation" ON "operation_reference" USING btree ("tenant_id","operation_id");--> statement-breakpoint
CREATE INDEX "signing_operation_due" ON "signing_operation" USING btree ("due_at") WHERE "signing_operation"."due_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "signing_operation_state" ON "signing_operation" USING btree ("tenant_id","state","operation_id");--> statement-breakpoint
CREATE INDEX "signing_operation_target" ON "signing_operation" USING btree ("tenant_id","target_operation_id") WHERE "signing_operation"."target_operation_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "ticket_open" ON "ticket" USING btree ("tenant_id","due_at") WHERE "ticket"."resolved_at" IS NULL;--> statement-breakpoint
CREATE INDEX "work_item_due" ON "work_item" USING btree ("run_after");--> statement-breakpoint
CREATE INDEX "worker_process_alive" ON "worker_process" USING btree ("heartbeat_at") WHERE "worker_process"."stopped_at" IS NULL;--> statement-breakpoint
CREATE INDEX "contract_signing_operation" ON "contract_signing" USING btree ("tenant_id","operation_id");--> statement-breakpoint
CREATE INDEX "webhook_inbox_due" ON "webhook_inbox" USING btree ("due_at") WHERE "webhook_inbox"."due_at" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "webhook_inbox_unbound" ON "webhook_inbox" USING btree ("tenant_id","connection_id","provider_ref") WHERE "webhook_inbox"."status" IN ('WAITING','QUARANTINED');