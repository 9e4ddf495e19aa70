import { useSearchParams } from "wouter";
import { TicketList } from "../parts/ticket-list.js";
import { spoken } from "../words.js";

/** What somebody is asked to look at. `kinds`: one list for each; without them all, or the kind that the URL names. */
export function Tickets({ tenant, title, kinds }: { tenant: string; title: string; kinds?: readonly string[] }) {
  const [params, setParams] = useSearchParams();
  const status = params.get("status") ?? "open";
  const kind = params.get("kind") ?? undefined;
  const set = (name: string, value: string): void =>
    setParams((former) => {
      const next = new URLSearchParams(former);
      if (value === "") next.delete(name);
      else next.set(name, value);
      return next;
    });
  return (
    <>
      <h1>{title}</h1>
      <div className="row">
        <label>
          status
          <select value={status} onChange={({ target }) => set("status", target.value)}>
            <option>open</option>
            <option>closed</option>
            <option>all</option>
          </select>
        </label>
        {kinds !== undefined || kind === undefined ? null : (
          <button type="button" onClick={() => set("kind", "")}>
            Only {spoken(kind)}: show all
          </button>
        )}
      </div>
      {(kinds ?? [kind]).map((each) => (
        <section key={`${each} ${status}`}>
          {kinds === undefined || each === undefined ? null : <h2>{spoken(each)}</h2>}
          <TicketList tenant={tenant} status={status} kind={each} />
        </section>
      ))}
    </>
  );
}
