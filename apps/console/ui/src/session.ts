import { createContext, useContext } from "react";
import type { Session } from "../../src/contract.js";

export const SessionContext = createContext<Session | undefined>(undefined);

/** Who is logged in; only below the login. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error("used above the login");
  return session;
}

export const useMayAct = (): boolean => useSession().role === "operator";
