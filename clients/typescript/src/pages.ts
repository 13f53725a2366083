import type { Client, FetchOptions } from "openapi-fetch";
import { type Result, unwrap } from "./problems.js";
import type { paths } from "./schema.js";

interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

type Listed<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": Page<infer T> } } } };
}
  ? T
  : never;

/** The paths of all lists. */
export type ListPath = { [P in keyof paths]: Listed<P> extends never ? never : P }[keyof paths];

/** The parameters of a list, and the maximum number of entries to read. */
export type ListInit<P extends ListPath> = FetchOptions<NonNullable<paths[P]["get"]>> & { max: number };

/** The largest page that the API allows. */
const LIMIT = 100;

/**
 * Reads a list, page after page, and yields its entries.
 *
 * The next page is requested only when the loop needs it. A cursor is valid for a day.
 */
export async function* pages<P extends ListPath>(
  client: Client<paths>,
  path: P,
  { max, ...init }: ListInit<P>,
): AsyncGenerator<Listed<P>, void, undefined> {
  // TypeScript cannot resolve the types of a route that is a type parameter.
  const get = client.GET as unknown as (path: P, init: unknown) => Promise<Result<Page<Listed<P>>>>;
  const { params } = init as { params?: { query?: object } };
  let cursor: string | null = null;
  for (let left = max; left > 0; ) {
    const query = { limit: Math.min(left, LIMIT), ...params?.query, ...(cursor === null ? {} : { cursor }) };
    const page: Page<Listed<P>> = unwrap(await get(path, { ...init, params: { ...params, query } }));
    yield* page.items.slice(0, left);
    left -= page.items.length;
    cursor = page.next_cursor;
    if (cursor === null) return;
  }
}
