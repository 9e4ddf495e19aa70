import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api.js";
import { App } from "./app.js";
import "./style.css";

// What is shown is asked for again while its tab is seen, and not otherwise. A refusal is not asked for twice, and one for
// want of a login leads there at once.
const client = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      const loggedOut = error instanceof ApiError && error.status === 401;
      if (loggedOut && queryKey[0] !== "session") void client.invalidateQueries({ queryKey: ["session"] });
    },
  }),
  defaultOptions: {
    queries: {
      retry: (failures, error) =>
        failures < 1 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
      refetchIntervalInBackground: false,
    },
  },
});
const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
