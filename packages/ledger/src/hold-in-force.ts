/** Is a hold of the tenant, the connection or the action of operation `o` in force? A condition, for every statement that asks. */
export const holdInForce = `EXISTS (SELECT 1 FROM hold h WHERE h.tenant_id = o.tenant_id AND h.released_at IS NULL
        AND (h.ends_at IS NULL OR h.ends_at > now()) AND (h.connection_id IS NULL OR h.connection_id = o.connection_id)
        AND (h.action IS NULL OR h.action = o.action))`;
