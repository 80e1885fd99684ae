// A labelled input with its hint and its mistake, tied together for screen readers.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Around {
  label: string;
  hint?: ComponentChildren;
  mistake?: string;
  children: (ids: { id: string; describedBy: string | undefined; invalid: boolean }) => ComponentChildren;
}

export function Field({ label, hint, mistake, children }: Around) {
  const id = useId();
  const hintId = hint ? `${id}-hint` : "";
  const mistakeId = mistake ? `${id}-mistake` : "";
  const describedBy = [mistakeId, hintId].filter(Boolean).join(" ") || undefined;
  return (
    <div class={mistake ? "field wrong" : "field"}>
      <label for={id}>{label}</label>
      {children({ id, describedBy, invalid: Boolean(mistake) })}
      {mistake && <p class="mistake" id={mistakeId}>{mistake}</p>}
      {hint && <p class="hint" id={hintId}>{hint}</p>}
    </div>
  );
}

type Heard<Element> = (event: { currentTarget: Element }) => void;

/** What every input of ours can be given; the rest of HTML's attributes is not needed here. */
interface Shared<Element> {
  label: string;
  hint?: ComponentChildren;
  mistake?: string;
  name?: string;
  value?: string;
  required?: boolean;
  disabled?: boolean;
  onInput?: Heard<Element>;
  onChange?: Heard<Element>;
}

interface InputProps extends Shared<HTMLInputElement> {
  type?: "text" | "search" | "password" | "datetime-local";
  placeholder?: string;
  inputMode?: "text" | "numeric";
  autocomplete?: string;
  spellcheck?: boolean;
  step?: number;
}

export function TextField({ label, hint, mistake, type = "text", ...input }: InputProps) {
  return (
    <Field label={label} hint={hint} mistake={mistake}>
      {({ id, describedBy, invalid }) => (
        <input autocomplete="off" spellcheck={false} {...{ ...input, type } as object}
          id={id} aria-describedby={describedBy} aria-invalid={invalid || undefined} />
      )}
    </Field>
  );
}

interface SelectProps extends Shared<HTMLSelectElement> {
  choices: ReadonlyArray<readonly [value: string, label: string]>;
}

export function SelectField({ label, hint, mistake, choices, value, ...select }: SelectProps) {
  return (
    <Field label={label} hint={hint} mistake={mistake}>
      {({ id, describedBy, invalid }) => (
        <select {...select as object} id={id} aria-describedby={describedBy} aria-invalid={invalid || undefined}>
          {choices.map(([choice, text]) => <option key={choice} value={choice} selected={choice === value}>{text}</option>)}
        </select>
      )}
    </Field>
  );
}

interface AreaProps extends Shared<HTMLTextAreaElement> {
  rows?: number;
  maxLength?: number;
  placeholder?: string;
  spellcheck?: boolean;
  class?: string;
}

export function AreaField({ label, hint, mistake, ...area }: AreaProps) {
  return (
    <Field label={label} hint={hint} mistake={mistake}>
      {({ id, describedBy, invalid }) => (
        <textarea rows={3} {...area as object} id={id} aria-describedby={describedBy} aria-invalid={invalid || undefined} />
      )}
    </Field>
  );
}
