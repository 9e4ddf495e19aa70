import { useState } from "react";
import { call } from "../api.js";
import { Problem } from "../parts/common.js";

export function Login({ again }: { again: () => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>();
  const logIn = async (): Promise<void> => {
    try {
      await call("POST", "/console/session", { token: token.trim() });
      again();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <main>
      <h1>Countersign</h1>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          void logIn();
        }}
      >
        <label className="grow">
          Token
          <input
            type="password"
            autoComplete="current-password"
            required
            value={token}
            data-testid="login-token"
            onChange={({ target }) => setToken(target.value)}
          />
        </label>
        <button type="submit" className="main" data-testid="login-submit">
          Log in
        </button>
      </form>
      <Problem error={error} />
      <p className="note">
        A token is made with <code>countersign console-access add --name you --role operator</code>. A viewer looks; an
        operator also decides.
      </p>
    </main>
  );
}
