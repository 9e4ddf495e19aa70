import type { InboxFilter, InboxState } from "@countersign/ledger";

/** Conditions as people and the API name them, as the ledger does. */
export function toInboxFilter(conditions: {
  ids?: string[] | undefined;
  status?: InboxState[] | undefined;
  connection?: string | undefined;
  endpoint?: string | undefined;
  type?: string | undefined;
  reason?: string | undefined;
  reference?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}): InboxFilter {
  const { ids, status, connection, endpoint, type, reason, reference, since, until } = conditions;
  return {
    ...(ids === undefined ? {} : { ids }),
    ...(status === undefined ? {} : { status }),
    ...(connection === undefined ? {} : { connectionId: connection }),
    ...(endpoint === undefined ? {} : { endpointId: endpoint }),
    ...(type === undefined ? {} : { eventType: type }),
    ...(reason === undefined ? {} : { outcome: reason }),
    ...(reference === undefined ? {} : { providerRef: reference }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}
