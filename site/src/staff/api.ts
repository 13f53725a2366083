import { type Client, createClient } from "@bodega/client";
import type { Config } from "../lib/config";
import { staff } from "./session.svelte";

export type { Schemas } from "../lib/api";

/** The client with staff's token. */
export let api: Client;

export function connect(config: Config): void {
  staff.start(config);
  api = createClient({
    baseUrl: config.apiUrl,
    token: () => staff.token(),
    retry: { attempts: 3, wait: 400 },
    fetch: async (request) => {
      const response = await fetch(request);
      if (response.status === 401) staff.refuse("expired");
      if (response.status === 403) staff.refuse("forbidden");
      return response;
    },
  });
}
