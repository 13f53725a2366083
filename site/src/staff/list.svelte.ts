import { untrack } from "svelte";

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
  total?: number;
}

type Read<T> = (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>;

/** A list that loads one page, and further pages when the person asks. */
export class List<T> {
  items = $state.raw<T[]>([]);
  total = $state<number>();
  next = $state<string | null>(null);
  error = $state.raw<unknown>();
  loading = $state(true);
  #read: Read<T> | undefined;
  #work: AbortController | undefined;

  begin(read: Read<T> | undefined): void {
    this.#read = read;
    this.items = [];
    this.next = null;
    void this.#load(undefined);
  }

  reload = (): void => void this.#load(undefined);
  more = (): void => void (this.next && !this.loading && this.#load(this.next));

  stop(): void {
    this.#work?.abort();
  }

  async #load(cursor: string | undefined): Promise<void> {
    this.stop();
    const { signal } = (this.#work = new AbortController());
    this.error = undefined;
    this.loading = !!this.#read;
    if (!this.#read) return;
    try {
      const page = await this.#read(cursor, signal);
      if (signal.aborted) return;
      this.items = cursor ? [...this.items, ...page.items] : page.items;
      this.next = page.next_cursor;
      this.total = page.total;
    } catch (error) {
      if (signal.aborted) return;
      this.error = error;
    }
    this.loading = false;
  }
}

/** Reads a list whenever what `source` depends on has changed. */
export function list<T>(source: () => Read<T> | undefined): List<T> {
  const state = new List<T>();
  $effect.pre(() => {
    const read = source();
    untrack(() => state.begin(read));
    return () => state.stop();
  });
  return state;
}
