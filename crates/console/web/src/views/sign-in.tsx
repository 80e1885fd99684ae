// The form that asks for an API key.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Problem, askAs, asProblem } from "../api";
import { TextField } from "../parts/field";
import { farewell, signIn } from "../session";
import { useStore } from "../store";
import type { Me } from "../wire";

export function SignInView() {
  const because = useStore(farewell);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    document.title = "Sign in · waitroom console";
    form.current?.querySelector("input")?.focus();
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const secret = String(new FormData(form.current!).get("key")).trim();
    if (!secret || busy) return;
    setBusy(true);
    setProblem(null);
    try {
      signIn(secret, await askAs<Me>(secret, "/me"));
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const mistake = problem?.status === 401 ? "This key is not known, was revoked or has expired." : undefined;
  return (
    <main class="alone">
      <form class="card sign-in" ref={form} onSubmit={submit} noValidate>
        <svg class="mark" viewBox="0 0 32 20" aria-hidden="true"><rect width="32" height="20" rx="5" /><path d="M11 0v20" /><circle cx="21" cy="10" r="3.6" /></svg>
        <h1>waitroom console</h1>
        <div role="status">{because && !problem && <p class="notice warn">{because}</p>}</div>
        <TextField label="API key" name="key" type="password" autocomplete="current-password" required
          mistake={mistake} hint="Kept in this tab until you sign out or close it." />
        <div role="alert">{problem && !mistake && <p class="notice bad">{problem.message}</p>}{mistake && <span class="unseen">{mistake}</span>}</div>
        <button type="submit" class="main wide" disabled={busy}>{busy ? "One moment…" : "Sign in"}</button>
        <p class="hint">An owner makes keys under Keys, or with <code>waitroom key create</code>. The first one is given to the server when it starts.</p>
      </form>
    </main>
  );
}
