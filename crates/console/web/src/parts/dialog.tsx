// A question that must be answered first: a native <dialog>, which keeps the focus inside, closes
// by Escape and gives the focus back to whatever opened it.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Problem, asProblem } from "../api";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const frame = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the browser paints: what has the focus now is what it goes back to, and it goes back in
  // the same moment in which the dialog is taken away.
  useLayoutEffect(() => {
    const dialog = frame.current;
    if (!dialog) return;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog ref={frame} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); onClose(); }}
      onMouseDown={(event) => { if (event.target === frame.current) onClose(); }}>
      <div class="dialog">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface AskProps {
  title: string;
  /** The word on the button: what will happen, not "OK". */
  act: string;
  tone?: "calm" | "grave";
  onClose: () => void;
  /** Throws a problem, or it is done. */
  onAct: (form: FormData) => Promise<void>;
  /** Whether the button may be pressed; for what must be typed first. */
  ready?: boolean;
  children: ComponentChildren | ((problem: Problem | null) => ComponentChildren);
}

/** A form in a dialog. Mistakes of fields are shown at the fields, others above the buttons. */
export function Ask({ title, act, tone = "calm", onClose, onAct, ready = true, children }: AskProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || !ready || !form.current) return;
    setBusy(true);
    setProblem(null);
    try {
      await onAct(new FormData(form.current));
      onClose();
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const [atFields, setAtFields] = useState(false);
  useEffect(() => {
    if (!problem) return;
    // A mistake of a field that this form does not have would be seen nowhere else.
    setAtFields(problem.fields.length > 0 && form.current?.querySelectorAll(".mistake").length === problem.fields.length);
    form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [problem]);
  return (
    <Dialog title={title} onClose={onClose}>
      <form ref={form} onSubmit={submit} noValidate>
        {typeof children === "function" ? children(problem) : children}
        <div role="alert">
          {problem && <p class="notice bad">{atFields ? "Nothing was done: see above." : told(problem)}</p>}
        </div>
        <div class="buttons">
          <button type="button" class="quiet" onClick={onClose}>Cancel</button>
          <button type="submit" class={tone === "grave" ? "grave" : "main"} disabled={busy || !ready}>
            {busy ? "One moment…" : act}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function told(problem: Problem): string {
  const fields = problem.fields.map((it) => `${it.field}: ${it.problem}`).join("; ");
  return fields ? `Nothing was done. ${fields}` : problem.message;
}
