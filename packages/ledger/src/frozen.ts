/** Columns that never change once written (law 3, law 11): the trigger refuses it, also from `psql`. */
export const frozenColumns = {
  signing_operation: [
    "tenant_id",
    "operation_id",
    "intent_key",
    "action",
    "connection_id",
    "payload_hash",
    "schema_version",
    "hash_parts",
    "provider_key",
    "supersedes",
    "supersede_mode",
    "target_operation_id",
    "requested_by",
    "approved_by",
    "created_at",
  ],
  approved_payload: ["tenant_id", "operation_id", "schema_version", "body_digest", "key_id", "created_at"],
  operation_reference: [
    "tenant_id",
    "connection_id",
    "provider_ref",
    "operation_id",
    "source",
    "attempt_no",
    "seen_at",
  ],
} as const;

/** Written at most once: from NULL to a value, then frozen. */
export const writtenOnceColumns = ["superseded_by", "target_ref", "first_attempt_at", "finished_at"] as const;

/** Never smaller than before. */
export const growingColumns = ["attempt_no", "evidence_no", "event_no", "references_seen", "quiet_from"] as const;
