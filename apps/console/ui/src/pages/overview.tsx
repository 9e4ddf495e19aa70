import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useSearchParams } from "wouter";
import type { Overview as OverviewAnswer } from "../../../src/contract.js";
import { call, query } from "../api.js";
import { lastHour } from "../minutes.js";
import { Chart } from "../parts/chart.js";
import { NoRows, Problem, State, Table } from "../parts/common.js";
import { age, moment, spoken } from "../words.js";

/** What needs a person, first; then how it goes. */
export function Overview() {
  const [search] = useSearchParams();
  const tenant = search.get("tenant") ?? undefined;
  const { data, error } = useQuery({
    queryKey: ["overview", tenant],
    queryFn: async () => await call<OverviewAnswer>("GET", `/console/overview${query({ tenant })}`),
    refetchInterval: 5_000,
  });
  if (data === undefined) return error === null ? <p>Loading…</p> : <Problem error={error} />;
  return (
    <>
      <h1>Overview{tenant === undefined ? " of all tenants" : ` of ${tenant}`}</h1>
      <Problem error={error} />
      <NeedsPerson data={data} />
      <Ages data={data} />
      <Charts at={data.at} minutes={data.minutes} />
      <h2>Operations by state</h2>
      <Table head={["Tenant", "Connection", "Action", "State", "Count"]}>
        <NoRows of={data.states} columns={5} />
        {data.states.map((each) => (
          <tr key={`${each.tenantId} ${each.connection} ${each.action} ${each.state}`}>
            <td>{each.tenantId}</td>
            <td>{each.connection}</td>
            <td>{each.action}</td>
            <td>
              <Link
                to={`/t/${each.tenantId}/operations${query({ state: each.state, action: each.action, connection: each.connection })}`}
              >
                <State of={each.state} />
              </Link>
            </td>
            <td>{each.count}</td>
          </tr>
        ))}
      </Table>
      <Queues data={data} />
    </>
  );
}

function NeedsPerson({ data }: { data: OverviewAnswer }) {
  return (
    <>
      <h2>Needs a person</h2>
      {data.tickets.length === 0 && data.paused.length === 0 ? <p className="good">Nothing.</p> : null}
      <div className="cards">
        {data.tickets.map((each) => (
          <div className="card" key={`${each.tenantId} ${each.kind} ${each.owner}`}>
            <Link to={`/t/${each.tenantId}/tickets?kind=${each.kind}`} className="big">
              {each.open} {spoken(each.kind)}
            </Link>
            <span className={each.overdue > 0 ? "bad" : "dim"}>
              {each.overdue > 0 ? `${each.overdue} overdue` : `due ${moment(each.nextDueAt)}`}
            </span>
            <div className="dim">
              {each.tenantId}, {each.owner}
            </div>
          </div>
        ))}
        {data.paused.map((each) => (
          <div className="card" key={`${each.tenantId} ${each.connection} ${each.why}`}>
            <span className="big warn">{each.connection} sends nothing</span>
            <span>
              {spoken(each.why)}
              {each.reason === null ? "" : `: ${spoken(each.reason)}`}
            </span>
            <div className="dim">
              {each.tenantId}
              {each.until === null ? "" : `, until ${moment(each.until)}`}
            </div>
          </div>
        ))}
      </div>
    </>
  );
}

function Ages({ data }: { data: OverviewAnswer }) {
  const { unknown, received, review } = data.oldest;
  const cards = [
    [
      "Oldest UNKNOWN",
      unknown,
      (each: { tenantId: string; subjectId: string }) => `/t/${each.tenantId}/operations/${each.subjectId}`,
    ],
    [
      "Oldest NEEDS REVIEW",
      review,
      (each: { tenantId: string; subjectId: string }) => `/t/${each.tenantId}/operations/${each.subjectId}`,
    ],
    [
      "Oldest event not applied",
      received,
      (each: { tenantId: string; subjectId: string }) => `/t/${each.tenantId}/inbox/${each.subjectId}`,
    ],
  ] as const;
  return (
    <>
      <h2>Ages</h2>
      <div className="cards">
        {cards.map(([name, oldest, to]) => (
          <div className="card" key={name}>
            <span className="dim">{name}</span>
            <span className="big">{oldest === null ? "none" : <Link to={to(oldest)}>{age(oldest.seconds)}</Link>}</span>
          </div>
        ))}
      </div>
    </>
  );
}

function Charts({ at, minutes }: { at: string; minutes: OverviewAnswer["minutes"] }) {
  // Drawn anew each minute, or when something moved; not at every answer.
  const minute = at.slice(0, 16);
  const { times, moves, latency } = useMemo(() => lastHour(`${minute}:00Z`, minutes), [minute, minutes]);
  if (minutes.length === 0) return <p className="note">Nothing moved in the last hour.</p>;
  return (
    <>
      <h2>Last hour</h2>
      <div className="charts">
        <Chart title="Moves per minute, by state reached" times={times} series={moves} unit="" />
        {latency.length === 0 ? (
          <p className="note">The provider was not called in the last hour.</p>
        ) : (
          <Chart title="Provider call, mean by outcome" times={times} series={latency} unit="ms" />
        )}
      </div>
    </>
  );
}

function Queues({ data }: { data: OverviewAnswer }) {
  return (
    <>
      <h2>
        <a href="/queues">Queues</a>
      </h2>
      {data.queues === null ? (
        <p className="note">The queues do not answer. Nothing is lost: the ledger hands everything over again.</p>
      ) : (
        <Table head={["Queue", "Waiting", "Active", "Delayed", "Failed", ""]}>
          {data.queues.map((each) => (
            <tr key={each.name}>
              <td>{each.name}</td>
              <td>{each.waiting}</td>
              <td>{each.active}</td>
              <td>{each.delayed}</td>
              <td>{each.failed}</td>
              <td>{each.paused ? <span className="warn">paused</span> : null}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
