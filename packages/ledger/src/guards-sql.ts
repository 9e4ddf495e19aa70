import { legalPairs } from "./edges.js";
import { frozenColumns, growingColumns, writtenOnceColumns } from "./frozen.js";
import { releaseRules } from "./relations.js";
import { finalStates } from "./state.js";

/**
 * The part of the schema that refuses what the design forbids (law 11), made from `edges.ts`, `relations.ts` and
 * `frozen.ts`. `migrations/0007_guards.sql` is this text; a test compares the two.
 *
 * SQLSTATEs: CS001 illegal transition, CS002 frozen column, CS003 append-only table, CS004 reference of another operation,
 * CS005 kept by a legal hold.
 */
export function guardsSql(): string {
  return [
    openTicketIndex,
    onePolicyIndex,
    operationGuard(),
    payloadGuard(),
    documentGuard,
    subjectGuard,
    referenceGuard(),
    appendOnly,
    legalHolds,
    releaseEffect(),
    releaseDependants(),
    bindSigning,
    keepBodies,
    auditAfterEnd,
    keptRecords,
  ].join("\n--> statement-breakpoint\n");
}

/** The same policy twice in force would go on after one was revoked. */
const onePolicyIndex = `CREATE UNIQUE INDEX IF NOT EXISTS "tenant_policy_one" ON "tenant_policy" ("tenant_id", "policy", "action", COALESCE("connection_id", '')) WHERE "revoked_at" IS NULL;`;

const list = (values: readonly string[]): string => values.map((value) => `'${value}'`).join(", ");
const finals = list(finalStates);

const openTicketIndex = `CREATE UNIQUE INDEX IF NOT EXISTS "ticket_one_open" ON "ticket" ("tenant_id", "kind", "subject_kind", "subject_id") WHERE "resolved_at" IS NULL;`;

const differs = (columns: readonly string[]): string =>
  columns.map((name) => `NEW.${name} IS DISTINCT FROM OLD.${name}`).join("\n    OR ");

function operationGuard(): string {
  const pairs = legalPairs().map(([from, to]) => `'${from} ${to}'`);
  return `CREATE OR REPLACE FUNCTION cs_guard_operation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'PLANNED' OR NEW.attempt_no <> 0 OR NEW.provider_ref IS NOT NULL THEN
      RAISE EXCEPTION 'an operation begins PLANNED, never as %', NEW.state USING ERRCODE = 'CS001';
    END IF;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'ledger rows are never deleted' USING ERRCODE = 'CS003';
  END IF;
  IF NEW.state <> OLD.state THEN
    IF (OLD.state || ' ' || NEW.state) NOT IN (
      ${pairs.join(",\n      ")}
    ) THEN
      RAISE EXCEPTION 'illegal transition % to %', OLD.state, NEW.state USING ERRCODE = 'CS001';
    END IF;
    IF NEW.event_no <= OLD.event_no THEN
      RAISE EXCEPTION 'a transition needs its line in the history' USING ERRCODE = 'CS001';
    END IF;
    IF NEW.state = 'PLANNED' AND NEW.proof_seq IS DISTINCT FROM NEW.event_no THEN
      RAISE EXCEPTION 'only evidence returns an operation to PLANNED' USING ERRCODE = 'CS001';
    END IF;
    IF NEW.state = 'IN_FLIGHT' AND (OLD.superseded_by IS NOT NULL OR OLD.open_dependencies > 0) THEN
      RAISE EXCEPTION 'superseded or waiting operations are never sent' USING ERRCODE = 'CS001';
    END IF;
  END IF;
  IF NEW.attempt_no > OLD.attempt_no AND NOT (OLD.state = 'PLANNED' AND NEW.state = 'IN_FLIGHT' AND NEW.attempt_no = OLD.attempt_no + 1) THEN
    RAISE EXCEPTION 'an attempt begins with its claim' USING ERRCODE = 'CS001';
  END IF;
  IF NEW.provider_ref IS DISTINCT FROM OLD.provider_ref AND OLD.provider_ref IS NOT NULL THEN
    RAISE EXCEPTION 'frozen column of signing_operation' USING ERRCODE = 'CS002';
  END IF;
  IF ${differs(frozenColumns.signing_operation)} THEN
    RAISE EXCEPTION 'frozen column of signing_operation' USING ERRCODE = 'CS002';
  END IF;
  IF ${writtenOnceColumns.map((name) => `(OLD.${name} IS NOT NULL AND NEW.${name} IS DISTINCT FROM OLD.${name})`).join("\n    OR ")} THEN
    RAISE EXCEPTION 'column of signing_operation is written once' USING ERRCODE = 'CS002';
  END IF;
  IF ${growingColumns.map((name) => `(NEW.${name} < OLD.${name} AND ${name === "quiet_from" ? "NEW.state = OLD.state" : "true"})`).join("\n    OR ")} THEN
    RAISE EXCEPTION 'column of signing_operation never goes back' USING ERRCODE = 'CS002';
  END IF;
  IF OLD.quiet_from IS NOT NULL AND NEW.quiet_from IS NULL THEN
    RAISE EXCEPTION 'quiet_from is never cleared' USING ERRCODE = 'CS002';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_guard_operation BEFORE INSERT OR UPDATE OR DELETE ON "signing_operation" FOR EACH ROW EXECUTE FUNCTION cs_guard_operation();`;
}

function payloadGuard(): string {
  return `CREATE OR REPLACE FUNCTION cs_guard_payload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'approved payloads are never deleted' USING ERRCODE = 'CS003';
  END IF;
  IF ${differs(frozenColumns.approved_payload)} THEN
    RAISE EXCEPTION 'frozen column of approved_payload' USING ERRCODE = 'CS002';
  END IF;
  IF NEW.payload IS DISTINCT FROM OLD.payload OR NEW.request IS DISTINCT FROM OLD.request THEN
    IF NEW.payload IS NOT NULL OR NEW.request IS NOT NULL OR NOT EXISTS (
      SELECT 1 FROM signing_operation o
      WHERE o.tenant_id = OLD.tenant_id AND o.operation_id = OLD.operation_id AND o.state IN (${finals})
    ) THEN
      RAISE EXCEPTION 'approved payloads never change; erasure needs a final operation' USING ERRCODE = 'CS002';
    END IF;
    PERFORM cs_refuse_if_held(OLD.tenant_id, OLD.operation_id);
  END IF;
  IF OLD.erased_at IS NOT NULL AND NEW.erased_at IS DISTINCT FROM OLD.erased_at THEN
    RAISE EXCEPTION 'what is erased stays erased' USING ERRCODE = 'CS002';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_guard_payload BEFORE UPDATE OR DELETE ON "approved_payload" FOR EACH ROW EXECUTE FUNCTION cs_guard_payload();`;
}

/**
 * Legal holds end by a release and in no other way. Placing one and erasing lock the tenant's row against each other: once
 * a hold is placed, nothing that it covers is erased any more, also by what had begun before.
 */
const legalHolds = `CREATE OR REPLACE FUNCTION cs_refuse_if_held(held_tenant text, held_operation uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM tenant WHERE tenant_id = held_tenant FOR SHARE;
  IF EXISTS (SELECT 1 FROM legal_hold h WHERE h.tenant_id = held_tenant AND h.released_at IS NULL
      AND (h.operation_id IS NULL OR h.operation_id = held_operation)) THEN
    RAISE EXCEPTION 'kept by a legal hold' USING ERRCODE = 'CS005';
  END IF;
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION cs_guard_legal_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM 1 FROM tenant WHERE tenant_id = NEW.tenant_id FOR NO KEY UPDATE;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'legal holds are released, never deleted' USING ERRCODE = 'CS003';
  END IF;
  IF OLD.released_at IS NOT NULL OR NEW.released_at IS NULL
    OR ${differs(["tenant_id", "legal_hold_id", "operation_id", "placed_by", "reason", "created_at"])} THEN
    RAISE EXCEPTION 'a legal hold is released once and changed in no other way' USING ERRCODE = 'CS002';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_guard_legal_hold BEFORE INSERT OR UPDATE OR DELETE ON "legal_hold" FOR EACH ROW EXECUTE FUNCTION cs_guard_legal_hold();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_never_truncated BEFORE TRUNCATE ON "legal_hold" FOR EACH STATEMENT EXECUTE FUNCTION cs_append_only();`;

/**
 * Document bytes are erased, brought back by an upload, or written under another key; nothing else. Which operations need
 * a document is known by tokens that need the tenant's key: whoever erases checks that, and this what it can.
 */
const documentGuard = `CREATE OR REPLACE FUNCTION cs_guard_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'documents are erased, never deleted' USING ERRCODE = 'CS003';
  END IF;
  IF ${differs(["tenant_id", "sha256", "size"])} OR NEW.created_at < OLD.created_at THEN
    RAISE EXCEPTION 'frozen column of document' USING ERRCODE = 'CS002';
  END IF;
  IF NEW.bytes IS NULL AND OLD.bytes IS NOT NULL THEN
    PERFORM cs_refuse_if_held(OLD.tenant_id, NULL);
  ELSIF OLD.bytes IS NOT NULL AND NEW.bytes <> OLD.bytes AND NEW.key_id = OLD.key_id THEN
    RAISE EXCEPTION 'the bytes of a document never change' USING ERRCODE = 'CS002';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_guard_document BEFORE UPDATE OR DELETE ON "document" FOR EACH ROW EXECUTE FUNCTION cs_guard_document();`;

/** Who is looked for by token is forgotten with the payload, and not before; a document's rows say who needs it, and stay. */
const subjectGuard = `CREATE OR REPLACE FUNCTION cs_guard_subject() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' OR OLD.kind <> 'signer' OR EXISTS (
    SELECT 1 FROM approved_payload p WHERE p.tenant_id = OLD.tenant_id AND p.operation_id = OLD.operation_id AND p.payload IS NOT NULL
  ) THEN
    RAISE EXCEPTION 'a signer''s token goes with the payload, a document''s stays' USING ERRCODE = 'CS003';
  END IF;
  RETURN OLD;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_guard_subject BEFORE UPDATE OR DELETE ON "operation_subject" FOR EACH ROW EXECUTE FUNCTION cs_guard_subject();`;

function referenceGuard(): string {
  return `CREATE OR REPLACE FUNCTION cs_guard_reference() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'references are never deleted' USING ERRCODE = 'CS003';
  END IF;
  IF NEW.operation_id <> OLD.operation_id THEN
    RAISE EXCEPTION 'a reference never belongs to two operations' USING ERRCODE = 'CS004';
  END IF;
  IF ${differs(frozenColumns.operation_reference)} THEN
    RAISE EXCEPTION 'frozen column of operation_reference' USING ERRCODE = 'CS002';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_guard_reference BEFORE UPDATE OR DELETE ON "operation_reference" FOR EACH ROW EXECUTE FUNCTION cs_guard_reference();`;
}

const appendOnly = `CREATE OR REPLACE FUNCTION cs_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('countersign.retention', true) = 'on' AND TG_OP <> 'UPDATE' THEN
    RETURN COALESCE(NEW, OLD);
  END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS003';
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_append_only BEFORE UPDATE OR DELETE ON "operation_event" FOR EACH ROW EXECUTE FUNCTION cs_append_only();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_never_truncated BEFORE TRUNCATE ON "operation_event" FOR EACH STATEMENT EXECUTE FUNCTION cs_append_only();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_never_deleted BEFORE DELETE ON "provider_connection" FOR EACH ROW EXECUTE FUNCTION cs_append_only();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_never_truncated BEFORE TRUNCATE ON "signing_operation" FOR EACH STATEMENT EXECUTE FUNCTION cs_append_only();`;

function releaseEffect(): string {
  const rows = releaseRules.map((rule) => {
    const conditions = [`relation = '${rule.relation}'`, `ended_as = '${rule.endedAs}'`];
    if (rule.waiter !== "*") conditions.push(`waiter = '${rule.waiter}'`);
    if (rule.endedBecause !== "*") conditions.push(`ended_because = '${rule.endedBecause}'`);
    return `    WHEN ${conditions.join(" AND ")} THEN ARRAY['${rule.effect}', '${rule.because}']`;
  });
  return `CREATE OR REPLACE FUNCTION cs_release_effect(relation text, waiter text, ended_as text, ended_because text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
${rows.join("\n")}
    ELSE ARRAY['wait', 'no-rule']
  END
$$;`;
}

/**
 * Runs in the transaction of the end, as a statement of its own, so that its snapshot sees dependencies committed while
 * the end waited for the row lock. Ends that it causes run it again for their own waiters.
 */
const releaseDependants =
  (): string => `CREATE OR REPLACE FUNCTION cs_release(ended_tenant text, ended_operation uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  ended signing_operation%ROWTYPE;
  waiting record;
  verdict text[];
  kept text;
BEGIN
  SELECT * INTO ended FROM signing_operation WHERE tenant_id = ended_tenant AND operation_id = ended_operation;
  IF ended.state NOT IN (${finals}) THEN RETURN; END IF;
  -- A decision on a duplicate may have kept another reference than the row's own.
  SELECT provider_ref INTO kept FROM operation_reference
    WHERE tenant_id = ended_tenant AND operation_id = ended_operation AND role = 'kept' ORDER BY seen_at DESC LIMIT 1;
  FOR waiting IN
    SELECT d.operation_id, d.relation, w.action, w.state, w.event_no
    FROM operation_dependency d
    JOIN signing_operation w ON w.tenant_id = d.tenant_id AND w.operation_id = d.operation_id
    WHERE d.tenant_id = ended_tenant AND d.depends_on_operation_id = ended_operation AND d.resolved_at IS NULL
    ORDER BY d.operation_id
    FOR UPDATE OF d, w
  LOOP
    verdict := cs_release_effect(waiting.relation, waiting.action, ended.state, ended.reason);
    IF waiting.relation = 'target' AND ended.state <> 'CONFIRMED' AND kept IS NOT NULL THEN
      verdict := ARRAY['release', 'target-kept-by-decision'];
    END IF;
    CONTINUE WHEN verdict[1] = 'wait';
    UPDATE operation_dependency SET resolved_at = now()
      WHERE tenant_id = ended_tenant AND operation_id = waiting.operation_id AND depends_on_operation_id = ended_operation;
    CONTINUE WHEN waiting.state IN (${finals});
    -- A waiter that evidence has moved to UNKNOWN keeps its truth: only its count goes down.
    IF verdict[1] = 'release' OR waiting.state <> 'PLANNED' THEN
      INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
        SELECT o.tenant_id, o.operation_id, o.event_no + 1, now(), 'released', o.state, o.state, verdict[2], 'ledger', o.attempt_no,
               jsonb_build_object('waitedFor', ended_operation)
        FROM signing_operation o WHERE o.tenant_id = ended_tenant AND o.operation_id = waiting.operation_id;
      UPDATE signing_operation SET
          open_dependencies = open_dependencies - 1,
          target_ref = CASE WHEN waiting.relation = 'target' THEN COALESCE(target_ref, kept, ended.provider_ref) ELSE target_ref END,
          due_at = CASE WHEN state <> 'PLANNED' THEN due_at WHEN open_dependencies = 1 THEN now() END,
          event_no = event_no + 1,
          dispatches = 0,
          updated_at = now()
        WHERE tenant_id = ended_tenant AND operation_id = waiting.operation_id;
    ELSE
      INSERT INTO operation_event (tenant_id, operation_id, seq, at, kind, from_state, to_state, reason, actor, attempt_no, evidence)
        SELECT o.tenant_id, o.operation_id, o.event_no + 1, now(), 'transition', 'PLANNED', 'SUPERSEDED', verdict[2], 'ledger', o.attempt_no,
               jsonb_build_object('waitedFor', ended_operation)
        FROM signing_operation o WHERE o.tenant_id = ended_tenant AND o.operation_id = waiting.operation_id;
      IF waiting.relation = 'send-first' THEN
        INSERT INTO ticket (tenant_id, ticket_id, kind, subject_kind, subject_id, owner, reason, due_at)
          SELECT t.tenant_id, gen_random_uuid(), 'void-retired', 'operation', waiting.operation_id::text,
                 t.ticket_owners ->> 'void-retired', verdict[2], now() + interval '1 day'
          FROM tenant t WHERE t.tenant_id = ended_tenant
          ON CONFLICT DO NOTHING;
      END IF;
      UPDATE signing_operation SET
          state = 'SUPERSEDED',
          reason = verdict[2],
          open_dependencies = open_dependencies - 1,
          due_at = NULL,
          finished_at = now(),
          event_no = event_no + 1,
          updated_at = now()
        WHERE tenant_id = ended_tenant AND operation_id = waiting.operation_id;
    END IF;
  END LOOP;
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION cs_release_after_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cs_release(NEW.tenant_id, NEW.operation_id);
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_release_after_end AFTER UPDATE OF "state" ON "signing_operation" FOR EACH ROW
  WHEN (NEW.dependants > 0 AND NEW.state IN (${finals}) AND OLD.state <> NEW.state)
  EXECUTE FUNCTION cs_release_after_end();`;

/** Binding a reference makes the events that waited for it due, in the same transaction (DESIGN §4 "Signing rows"). */
const bindSigning = `CREATE OR REPLACE FUNCTION cs_bind_signing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE webhook_inbox SET status = 'RECEIVED', due_at = now(), wait_until = NULL,
      replays = replays + CASE WHEN status = 'QUARANTINED' THEN 1 ELSE 0 END
    WHERE tenant_id = NEW.tenant_id AND connection_id = NEW.connection_id AND provider_ref = NEW.provider_ref
      AND (status = 'WAITING' OR (status = 'QUARANTINED' AND outcome = 'unmapped-reference'));
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_bind_signing AFTER UPDATE OF "operation_id" ON "contract_signing" FOR EACH ROW
  WHEN (OLD.operation_id IS NULL AND NEW.operation_id IS NOT NULL)
  EXECUTE FUNCTION cs_bind_signing();`;

/** SQL for the operation that an event speaks of: the one bound to its request, else the one that it names itself. */
export const operationOfEvent = (event: string): string =>
  `SELECT COALESCE(s.operation_id, e.operation_id) FROM webhook_inbox e
    LEFT JOIN contract_signing s ON s.tenant_id = e.tenant_id AND s.connection_id = e.connection_id AND s.provider_ref = e.provider_ref
    WHERE e.tenant_id = ${event}.tenant_id AND e.inbox_id = ${event}.inbox_id AND e.received_at = ${event}.received_at`;

/** The raw bytes of an event that is still open are never erased, and those of any event never change (also from `psql`). */
const keepBodies = `CREATE OR REPLACE FUNCTION cs_keep_bodies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (NEW.bytes = OLD.bytes OR NEW.key_id <> OLD.key_id) THEN
    RETURN NEW;
  END IF;
  IF TG_OP = 'UPDATE' OR EXISTS (
    SELECT 1 FROM webhook_inbox i WHERE i.tenant_id = OLD.tenant_id AND i.inbox_id = OLD.inbox_id
      AND i.status IN ('RECEIVED', 'WAITING', 'QUARANTINED', 'DEAD')
  ) THEN
    RAISE EXCEPTION 'the body of an open event is kept' USING ERRCODE = 'CS003';
  END IF;
  PERFORM cs_refuse_if_held(OLD.tenant_id, (${operationOfEvent("OLD")}));
  RETURN OLD;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_keep_bodies BEFORE UPDATE OR DELETE ON "webhook_body" FOR EACH ROW EXECUTE FUNCTION cs_keep_bodies();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_never_deleted BEFORE DELETE ON "webhook_inbox" FOR EACH ROW EXECUTE FUNCTION cs_append_only();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_never_truncated BEFORE TRUNCATE ON "webhook_inbox" FOR EACH STATEMENT EXECUTE FUNCTION cs_append_only();`;

/**
 * After the end, look once more (DESIGN §3): where an attempt was ever in doubt, and after every VOID of ours, since
 * nothing at the provider stops a signer from being faster. Due when the row went quiet; who looks waits for the window.
 */
const auditAfterEnd = `CREATE OR REPLACE FUNCTION cs_audit_after_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO work_item (tenant_id, work_item_id, kind, dedupe_key, subject_id, run_after, not_before)
    SELECT NEW.tenant_id, gen_random_uuid(), 'audit', NEW.operation_id::text || ' ' || look.n, NEW.operation_id::text,
           GREATEST(now(), NEW.quiet_from) + look.later, GREATEST(now(), NEW.quiet_from) + look.later
    FROM (VALUES (1, interval '0'), (2, interval '1 day')) AS look(n, later)
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_audit_after_end AFTER UPDATE OF "state" ON "signing_operation" FOR EACH ROW
  WHEN (NEW.state IN (${finals}) AND OLD.state <> NEW.state AND NEW.attempt_no > 0
    AND (NEW.doubtful OR (NEW.action = 'VOID' AND NEW.state = 'CONFIRMED' AND NEW.cause = 'ours')))
  EXECUTE FUNCTION cs_audit_after_end();`;

/** What was done, and what was erased, is never edited: an action gets its result once. */
const keptRecords = `CREATE OR REPLACE FUNCTION cs_guard_console_action() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'console_action is append-only' USING ERRCODE = 'CS003';
  END IF;
  IF ${differs(["action_id", "at", "operator_id", "operator", "role", "tenant_id", "action", "subject_id", "why"])}
    OR (OLD.status IS NOT NULL AND NEW.status IS DISTINCT FROM OLD.status)
    OR (OLD.finished_at IS NOT NULL AND NEW.finished_at IS DISTINCT FROM OLD.finished_at) THEN
    RAISE EXCEPTION 'frozen column of console_action' USING ERRCODE = 'CS002';
  END IF;
  RETURN NEW;
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_guard_console_action BEFORE UPDATE OR DELETE ON "console_action" FOR EACH ROW EXECUTE FUNCTION cs_guard_console_action();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_never_truncated BEFORE TRUNCATE ON "console_action" FOR EACH STATEMENT EXECUTE FUNCTION cs_append_only();
--> statement-breakpoint
CREATE OR REPLACE FUNCTION cs_kept_for_ever() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS003';
END $$;
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_kept_for_ever BEFORE UPDATE OR DELETE ON "erasure" FOR EACH ROW EXECUTE FUNCTION cs_kept_for_ever();
--> statement-breakpoint
CREATE OR REPLACE TRIGGER cs_never_truncated BEFORE TRUNCATE ON "erasure" FOR EACH STATEMENT EXECUTE FUNCTION cs_kept_for_ever();`;
