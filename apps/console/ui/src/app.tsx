import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { Link, Redirect, Route, Switch, useLocation, useSearchParams } from "wouter";
import type { Session } from "../../src/contract.js";
import { ApiError, call, query, setSession } from "./api.js";
import { Actions } from "./pages/actions.js";
import { Event } from "./pages/event.js";
import { Inbox } from "./pages/inbox.js";
import { Login } from "./pages/login.js";
import { Operation } from "./pages/operation.js";
import { Operations } from "./pages/operations.js";
import { Overview } from "./pages/overview.js";
import { Ticket } from "./pages/ticket.js";
import { Tickets } from "./pages/tickets.js";
import { Problem } from "./parts/common.js";
import { SessionContext, useSession } from "./session.js";
import { elsewhere } from "./tenant-path.js";

/** The login, or the pages. */
export function App() {
  const asked = useQuery({
    queryKey: ["session"],
    queryFn: async () => {
      const session = await call<Session>("GET", "/console/session");
      setSession(session);
      return session;
    },
    retry: false,
    refetchInterval: 60_000,
  });
  if (asked.isPending) return <main>Loading…</main>;
  if (asked.error instanceof ApiError && asked.error.status === 401)
    return <Login again={() => void asked.refetch()} />;
  if (asked.data === undefined) return <Problem error={asked.error} />;
  return (
    <SessionContext value={asked.data}>
      <Frame>
        <Pages />
      </Frame>
    </SessionContext>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/" component={Overview} />
      <Route path="/login">
        <Redirect to="/" />
      </Route>
      <Route path="/actions" component={Actions} />
      <Route path="/t/:tenant/operations">{({ tenant }) => <Operations key={tenant} tenant={tenant} />}</Route>
      <Route path="/t/:tenant/operations/:id">
        {({ tenant, id }) => <Operation key={id} tenant={tenant} id={id} />}
      </Route>
      <Route path="/t/:tenant/reviews">
        {({ tenant }) => (
          <Tickets key={`r ${tenant}`} tenant={tenant} title="Reviews" kinds={["needs-review", "duplicate"]} />
        )}
      </Route>
      <Route path="/t/:tenant/tickets">
        {({ tenant }) => <Tickets key={`t ${tenant}`} tenant={tenant} title="Tickets" />}
      </Route>
      <Route path="/t/:tenant/tickets/:id">{({ tenant, id }) => <Ticket key={id} tenant={tenant} id={id} />}</Route>
      <Route path="/t/:tenant/quarantine">
        {({ tenant }) => <Inbox key={`q ${tenant}`} tenant={tenant} title="Quarantine" status="QUARANTINED" />}
      </Route>
      <Route path="/t/:tenant/dead-letters">
        {({ tenant }) => <Inbox key={`d ${tenant}`} tenant={tenant} title="Dead letters" status="DEAD" />}
      </Route>
      <Route path="/t/:tenant/inbox/:id">{({ tenant, id }) => <Event key={id} tenant={tenant} id={id} />}</Route>
      <Route>
        <h1>There is no such page</h1>
      </Route>
    </Switch>
  );
}

function Frame({ children }: { children: ReactNode }) {
  const session = useSession();
  const client = useQueryClient();
  const [path, navigate] = useLocation();
  const [search] = useSearchParams();
  // Pages of no tenant show all of them until one is chosen.
  const chosen = /^\/t\/([^/]+)\//.exec(path)?.[1] ?? search.get("tenant") ?? "";
  const tenant = chosen === "" ? (session.tenants[0] ?? "") : chosen;
  const ofTenant = path.startsWith("/t/");
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page begins at its top
  useEffect(() => {
    // Its answer is a promise in newer browsers, which an effect must not return.
    window.scrollTo(0, 0);
  }, [path]);
  const entries = [
    [`/${query({ tenant: chosen })}`, "Overview"],
    [`/t/${tenant}/operations`, "Operations"],
    [`/t/${tenant}/reviews`, "Reviews"],
    [`/t/${tenant}/quarantine`, "Quarantine"],
    [`/t/${tenant}/dead-letters`, "Dead letters"],
    [`/t/${tenant}/tickets`, "Tickets"],
    [`/actions${query({ tenant: chosen })}`, "Actions"],
  ] as const;
  const logOut = async (): Promise<void> => {
    await call("DELETE", "/console/session");
    setSession(undefined);
    client.clear();
    window.location.assign("/login");
  };
  return (
    <>
      <a className="skip" href="#content">
        To the content
      </a>
      <header className="top">
        <strong>Countersign</strong>
        <nav aria-label="Pages">
          {entries.map(([to, name]) => (
            <Link key={name} to={to} {...(path === to.split("?")[0] ? { "aria-current": "page" } : {})}>
              {name}
            </Link>
          ))}
          <a href="/queues" data-testid="nav-queues">
            Queues
          </a>
        </nav>
        <div className="who">
          <label>
            <span className="skip">Tenant</span>
            <select
              aria-label="Tenant"
              value={chosen}
              onChange={({ target }) => navigate(elsewhere(path, target.value))}
            >
              {ofTenant ? null : <option value="">all tenants</option>}
              {session.tenants.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <span>
            {session.operator} ({session.role})
          </span>
          <button type="button" onClick={() => void logOut()}>
            Log out
          </button>
        </div>
      </header>
      <main id="content">{children}</main>
    </>
  );
}
