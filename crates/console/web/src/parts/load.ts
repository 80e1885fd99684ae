// Something asked for once, when a view opens: loading, there, or failed with a way to try again.
import { useCallback, useEffect, useState } from "preact/hooks";
import { type Problem, asProblem } from "../api";

export interface Loaded<T> {
  value: T | null;
  problem: Problem | null;
  again: () => Promise<void>;
  set: (value: T) => void;
}

export function useLoaded<T>(load: () => Promise<T>, on: unknown[]): Loaded<T> {
  const [value, set] = useState<T | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const again = useCallback(async () => {
    try {
      set(await load());
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
  }, on);
  useEffect(() => {
    set(null);
    void again();
  }, on);
  return { value, problem, again, set };
}
