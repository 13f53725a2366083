import createFetchClient, { type Client as FetchClient, createQuerySerializer } from "openapi-fetch";
import { type RetryOptions, retrying } from "./retry.js";
import { KEYED, type paths, PUBLIC } from "./schema.js";

export { type Auth, AuthError, type AuthOptions, createAuth, localToken, type Store } from "./auth.js";
export { type ListInit, type ListPath, pages } from "./pages.js";
export { type Code, isProblem, type Problem, ProblemError, type Result, unwrap } from "./problems.js";
export type { RetryOptions } from "./retry.js";
export type { components, paths } from "./schema.js";
export { type Change, type ReadInit, type Versioned, versioned } from "./versions.js";

export type Client = FetchClient<paths>;

export interface ClientOptions {
  /** The address of the API, without `/v1`. */
  baseUrl: string;
  /** Returns the caller's token, such as {@link Auth.token}, or `undefined` for a visitor. */
  token?: () => string | undefined | Promise<string | undefined>;
  retry?: RetryOptions;
  fetch?: (request: Request) => Promise<Response>;
}

/**
 * Creates a client with the methods of `openapi-fetch`.
 *
 * It repeats requests that failed for a moment, and adds tokens and Idempotency-Keys where a route
 * takes them.
 */
export function createClient({ baseUrl, token, retry, fetch }: ClientOptions): Client {
  const client = createFetchClient<paths>({
    baseUrl,
    fetch: retrying(fetch ?? ((request) => globalThis.fetch(request)), retry),
    // `ids` is one text with commas. Other lists, such as `brand`, are repeated.
    querySerializer: (query) => createQuerySerializer({ array: { style: "form", explode: !("ids" in query) } })(query),
  });
  client.use({
    async onRequest({ request, schemaPath }) {
      const route = `${request.method} ${schemaPath}`;
      const { headers } = request;
      // Without a token, browsers send a read to a public page without asking for permission first,
      // and shared caches may answer it.
      if (!PUBLIC.has(route) && !headers.has("authorization")) {
        const held = await token?.();
        if (held) headers.set("authorization", `Bearer ${held}`);
      }
      if (KEYED.has(route) && !headers.has("idempotency-key")) headers.set("idempotency-key", crypto.randomUUID());
    },
  });
  return client;
}
