import { untrack } from "svelte";

/** Data of requests by key, so that a page that was shown before appears at once. */
const seen = new Map<string, unknown>();
const SEEN = 60;

export interface Source<T> {
  key: string;
  load: (signal: AbortSignal) => Promise<T>;
}

/** Data that a component loads. While other data loads, the data before stays. */
export class Resource<T> {
  data = $state.raw<T>();
  error = $state.raw<unknown>();
  loading = $state(true);
  attempt = $state(0);

  reload = (): void => {
    this.attempt++;
  };
}

/** Loads what `source` names, again when it changes. Without a source, nothing is loaded. */
export function resource<T>(source: () => Source<T> | undefined): Resource<T> {
  const state = new Resource<T>();
  $effect.pre(() => {
    const next = source();
    void state.attempt;
    const controller = new AbortController();
    untrack(() => {
      if (next) void load(state, next, controller.signal);
      else state.loading = false;
    });
    return () => controller.abort();
  });
  return state;
}

async function load<T>(state: Resource<T>, { key, load }: Source<T>, signal: AbortSignal): Promise<void> {
  if (seen.has(key)) state.data = seen.get(key) as T;
  state.loading = true;
  state.error = undefined;
  try {
    const data = await load(signal);
    if (signal.aborted) return;
    state.data = data;
    keep(key, data);
  } catch (error) {
    if (signal.aborted) return;
    state.error = error;
  }
  state.loading = false;
}

export function keep(key: string, data: unknown): void {
  seen.delete(key);
  seen.set(key, data);
  const [oldest] = seen.keys();
  if (seen.size > SEEN && oldest !== undefined) seen.delete(oldest);
}

/** Forgets private data after a sign-in or a sign-out. */
export const forget = (): void => seen.clear();
