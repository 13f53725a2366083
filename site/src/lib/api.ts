import { type Client, type components, createClient } from "@bodega/client";
import type { Config } from "./config";
import { session } from "./session.svelte";

export type Schemas = components["schemas"];

export let api: Client;

export function connect(config: Config): void {
  session.start(config);
  api = createClient({
    baseUrl: config.apiUrl,
    token: () => session.token(),
    retry: { attempts: 3, wait: 400 },
    fetch: async (request) => {
      const response = await fetch(request);
      if (response.status === 401) session.expire();
      return response;
    },
  });
}
