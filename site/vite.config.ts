import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type HtmlTagDescriptor, type Plugin } from "vite";

const system = process.env.BODEGA_URL ?? "http://127.0.0.1:3000";

/** Lets the browser fetch the shop's files together with those that load them. */
const preloadShop: Plugin = {
  name: "preload-shop",
  transformIndexHtml: {
    order: "post",
    handler: (_, { bundle }) =>
      Object.keys(bundle ?? {})
        .filter((name) => /^assets\/shop-/i.test(name))
        .sort()
        .map((name): HtmlTagDescriptor => {
          const file = { href: `/${name}`, crossorigin: true };
          const attrs = name.endsWith(".css") ? { rel: "preload", as: "style" } : { rel: "modulepreload" };
          return { tag: "link", attrs: { ...attrs, ...file }, injectTo: "head" };
        }),
  },
};

export default defineConfig({
  plugins: [svelte(), preloadShop],
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
            { name: "base", test: /node_modules|clients.typescript|preload-helper|src.(lib|kit).(?!Field|Dialog)/ },
            { name: "shop", test: /src.shop.(Shop|cart|products|pages.NotFound)/ },
          ],
        },
      },
    },
  },
});
