// A value that several views look at, and a hook that draws them again when it changes.
import { useEffect, useState } from "preact/hooks";

export class Store<T> {
  #value: T;
  #watchers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const tell of [...this.#watchers]) tell();
  }

  watch(tell: () => void): () => void {
    this.#watchers.add(tell);
    return () => this.#watchers.delete(tell);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [, draw] = useState(0);
  useEffect(() => {
    const again = () => draw((count) => count + 1);
    // It may have changed between the first drawing and now.
    again();
    return store.watch(again);
  }, [store]);
  return store.value;
}

/** The time, every `everyMs`: for ages and countdowns. */
export function useNow(everyMs = 1000): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
