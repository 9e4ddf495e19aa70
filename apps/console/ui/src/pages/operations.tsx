import type { connectionPage, OperationAnswer } from "@countersign/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { useHistoryState } from "wouter/use-browser-location";
import type { z } from "zod";
import type { SearchAnswer } from "../../../src/contract.js";
import { call, query } from "../api.js";
import { NoRows, Problem, State, Table, Turn } from "../parts/common.js";
import { sha256Of, type Wanted, wantedOf } from "../search.js";
import { moment, spoken, wentOut } from "../words.js";

const states = [
  "PLANNED",
  "IN_FLIGHT",
  "UNKNOWN",
  "RECONCILING",
  "NEEDS_REVIEW",
  "CONFIRMED",
  "TERMINAL_FAILED",
  "SUPERSEDED",
];
const actions = ["SEND", "VOID", "RESEND", "FINALIZE"];

/** Find, filter, page. */
export function Operations({ tenant }: { tenant: string }) {
  const [params, setParams] = useSearchParams();
  const [, navigate] = useLocation();
  const wanted = wantedOf(useHistoryState<unknown>());
  const connections = useConnections(tenant);
  const [cursor, setCursor] = useState<string>();
  const filter = {
    state: params.get("state") ?? undefined,
    action: params.get("action") ?? undefined,
    connection: params.get("connection") ?? undefined,
  };
  const { data, error, isPending } = useQuery({
    queryKey: ["operations", tenant, filter, wanted, cursor],
    queryFn: async (): Promise<Omit<SearchAnswer, "as"> & { as?: SearchAnswer["as"] }> =>
      wanted === undefined
        ? await call("GET", `/api/${tenant}/v1/operations${query({ ...filter, cursor, limit: "50" })}`)
        : await call("POST", `/console/${tenant}/search`, { ...wanted, ...(cursor === undefined ? {} : { cursor }) }),
    // A search is asked once.
    ...(wanted === undefined ? { refetchInterval: 10_000 } : { refetchOnWindowFocus: false, staleTime: 60_000 }),
  });
  const look = (next: Wanted | undefined): void => {
    setCursor(undefined);
    navigate(`/t/${tenant}/operations`, { state: next ?? null });
  };
  return (
    <>
      <h1>Operations</h1>
      <SearchForm look={look} />
      {wanted === undefined ? (
        <div className="row">
          {(
            [
              ["state", states],
              ["action", actions],
              ["connection", connections],
            ] as const
          ).map(([name, values]) => (
            <label key={name}>
              {name}
              <select
                value={filter[name] ?? ""}
                onChange={({ target }) => {
                  setCursor(undefined);
                  setParams((former) => {
                    const next = new URLSearchParams(former);
                    if (target.value === "") next.delete(name);
                    else next.set(name, target.value);
                    return next;
                  });
                }}
              >
                <option value="">any</option>
                {withChosen(values, filter[name]).map((value) => (
                  <option key={value}>{value}</option>
                ))}
              </select>
            </label>
          ))}
        </div>
      ) : (
        <p>
          {data?.as === "nothing" ? "Nothing was found." : `Found by ${spoken(data?.as ?? "…")}.`}{" "}
          <button type="button" onClick={() => look(undefined)}>
            Show all
          </button>
        </p>
      )}
      <Problem error={error} />
      {isPending ? <p>Loading…</p> : <Rows tenant={tenant} rows={data?.data ?? []} />}
      <Turn cursor={cursor} next={data?.nextCursor} to={setCursor} />
    </>
  );
}

/** A value that the URL names is shown even where it is none of those on offer. */
const withChosen = (values: readonly string[], chosen: string | undefined): readonly string[] =>
  chosen === undefined || values.includes(chosen) ? values : [...values, chosen];

/** The names to filter by; none while they are not known. */
function useConnections(tenant: string): string[] {
  const { data } = useQuery({
    queryKey: ["connections", tenant],
    queryFn: async () => await call<z.output<typeof connectionPage>>("GET", `/api/${tenant}/v1/connections`),
    staleTime: 60_000,
  });
  return data?.data.map(({ connection }) => connection) ?? [];
}

function SearchForm({ look }: { look: (wanted: Wanted | undefined) => void }) {
  const [text, setText] = useState("");
  const hash = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    look({ documentSha256: await sha256Of(await file.arrayBuffer()) });
  };
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        look(text.trim() === "" ? undefined : { text: text.trim() });
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void hash(event.dataTransfer.files[0]);
      }}
    >
      <label className="grow">
        Operation id, intent key, provider reference, error code, or a signer's address
        <input
          type="search"
          autoComplete="off"
          value={text}
          data-testid="search-box"
          onChange={({ target }) => setText(target.value)}
        />
      </label>
      <button type="submit" className="main" data-testid="search-submit">
        Search
      </button>
      <label>
        or its PDF (never uploaded)
        <input type="file" accept="application/pdf" onChange={({ target }) => void hash(target.files?.[0])} />
      </label>
    </form>
  );
}

function Rows({ tenant, rows }: { tenant: string; rows: readonly OperationAnswer[] }) {
  return (
    <Table
      head={["Operation", "Intent", "Action", "State", "Went out?", "Connection", "Planned"]}
      testId="operations-table"
    >
      <NoRows of={rows} columns={7} />
      {rows.map((row) => (
        <tr key={row.operationId}>
          <td className="id">
            <Link to={`/t/${tenant}/operations/${row.operationId}`}>{row.operationId}</Link>
          </td>
          <td className="id">{row.intentKey}</td>
          <td>{row.action}</td>
          <td>
            <State of={row.state} />
          </td>
          <td>{wentOut[row.sent]}</td>
          <td>{row.connection}</td>
          <td>{moment(row.createdAt)}</td>
        </tr>
      ))}
    </Table>
  );
}
