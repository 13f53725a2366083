import { readdirSync, readFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type HtmlTagDescriptor, type Plugin } from "vite";

const system = process.env.BODEGA_URL ?? "http://127.0.0.1:3000";

/**
 * Lets the browser fetch the shop's scripts together with those that load them. Its styles load
 * beside `/config.json`, because a preload that another area does not use is a warning.
 */
const preloadShop: Plugin = {
  name: "preload-shop",
  transformIndexHtml: {
    order: "post",
    handler: (_, { bundle }) =>
      Object.keys(bundle ?? {})
        .filter((name) => /^assets\/shop-.*\.js$/i.test(name))
        .sort()
        .map((name): HtmlTagDescriptor => {
          return { tag: "link", attrs: { rel: "modulepreload", href: `/${name}`, crossorigin: true }, injectTo: "head" };
        }),
  },
};

interface Event {
  routeKey?: string;
  rawQueryString?: string;
  pathParameters?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string;
  requestContext?: { authorizer?: { jwt: { claims: Record<string, string> } } };
}

/** A sample request for each route, from the events that the functions are tested with. */
const samples: Plugin = {
  name: "samples",
  resolveId: (id) => (id === "virtual:samples" ? `\0${id}` : undefined),
  load(id) {
    if (id !== "\0virtual:samples") return undefined;
    const folder = new URL("../events/", import.meta.url);
    const found: Record<string, object> = {};
    for (const name of readdirSync(folder).sort()) {
      if (!name.endsWith(".json") || name.endsWith(".expected.json")) continue;
      const event = JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Event;
      if (!event.routeKey || found[event.routeKey]) continue;
      const claims = event.requestContext?.authorizer?.jwt.claims;
      const headers = Object.entries(event.headers ?? {}).filter(([header]) => /^(if-|idempotency-|order-token|cart-token)/.test(header));
      found[event.routeKey] = {
        query: event.rawQueryString ?? "",
        path: event.pathParameters ?? {},
        headers: Object.fromEntries(headers),
        body: event.body ?? "",
        caller: claims ? (claims["cognito:groups"] ? "staff" : "customer") : "anonymous",
      };
    }
    return `export default ${JSON.stringify(found)}`;
  },
};

export default defineConfig({
  plugins: [svelte(), preloadShop, samples],
  server: { proxy: { "/v1": system, "/_local": system } },
  build: {
    target: ["chrome123", "firefox120", "safari17.5"],
    // The policy of the site permits no inline scripts, styles or data.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        // What all first pages share is one file, because each further file takes time.
        codeSplitting: {
          groups: [
            { name: "base", test: /node_modules|clients.typescript|preload-helper|src.(lib|kit).(?!Field|Dialog|AddressForm|Totals|addresses|countries)/ },
            { name: "shop", test: /src.shop.(Shop|cart|products|pages.NotFound)/ },
          ],
        },
      },
    },
  },
});
