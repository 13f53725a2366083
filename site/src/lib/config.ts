/** `/config.json`, which an operator writes beside the built site. */
export interface Config {
  name: string;
  /** The address of the API, without `/v1`. By default the address of the site. */
  apiUrl: string;
  /** `LoginUrl` and `UserPoolClientId` of the stack. Without them, the local system issues tokens. */
  loginUrl?: string;
  clientId?: string;
  /** The address of a module with the provider's form for cards. */
  cardForm?: string;
}

export let config: Config = { name: "Bodega", apiUrl: "" };

export async function loadConfig(): Promise<Config> {
  const response = await fetch("/config.json").catch(() => undefined);
  // A server that does not have the file may answer with the page itself.
  const given: unknown = response?.ok ? await response.json().catch(() => undefined) : undefined;
  config = { ...config, ...(given as Partial<Config> | undefined) };
  return config;
}

/** Returns whether the API is a local system, which has tokens and test cards of its own. */
export const isLocal = (): boolean => !config.loginUrl;
