/** The part of `Storage` (`sessionStorage`, `localStorage`) that a sign-in needs. */
export interface Store {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

export interface AuthOptions {
  /** The address of the sign-in pages: the output `LoginUrl` of the stack. */
  loginUrl: string;
  /** The output `UserPoolClientId` of the stack. */
  clientId: string;
  /** The page that calls {@link Auth.finish}. `LoginCallbacks` of the stack must list it. */
  redirectUri: string;
  /** The page after a sign-out, by default `redirectUri`. `LoginCallbacks` must list it. */
  signedOutUri?: string;
  scopes?: string[];
  /** The token for the API. Only an ID token, the default, proves the customer's email address. */
  use?: "id_token" | "access_token";
  /** By default the browser's `sessionStorage`, which ends with the tab. */
  store?: Store;
  fetch?: typeof fetch;
}

export interface Auth {
  /** Begins a sign-in, and returns the URL to which the page must go. */
  begin(returnTo?: string): Promise<string>;
  /**
   * Ends a sign-in at the page `redirectUri`, and returns the text that `begin` was given. Returns
   * `undefined` if the URL does not come from a sign-in.
   */
  finish(url: string): Promise<{ returnTo: string | undefined } | undefined>;
  /** Returns a token that is valid for the next seconds, or `undefined` for a visitor. */
  token(): Promise<string | undefined>;
  /** Forgets and revokes the tokens. Returns the URL that also ends the sign-in at the issuer. */
  signOut(): Promise<string>;
}

/** The issuer refused a sign-in, or a URL belongs to no sign-in of this page. */
export class AuthError extends Error {
  /** The issuer's code, such as `access_denied`. */
  readonly code: string;

  constructor(code: string, description?: string | null) {
    super(description || code);
    this.name = "AuthError";
    this.code = code;
  }
}

/** The issuer's response. */
interface Issued {
  id_token: string;
  access_token: string;
  refresh_token?: string;
  expires_in: number;
}

/** Stored tokens. Their times are of this device's clock, so the issuer's clock does not matter. */
interface Tokens extends Issued {
  received: number;
  expires: number;
}

const SIGN_IN = "bodega.sign-in";
const TOKENS = "bodega.tokens";
/** A token is refreshed so long before it expires, in milliseconds. */
const MARGIN = 60_000;

/** Signs customers in by the code flow with PKCE, at the pages of Amazon Cognito. */
export function createAuth(options: AuthOptions): Auth {
  const { clientId, redirectUri, signedOutUri = redirectUri, scopes = ["openid", "email"] } = options;
  const { use = "id_token", store = globalThis.sessionStorage ?? memory() } = options;
  const send = options.fetch ?? ((...request: Parameters<typeof fetch>) => globalThis.fetch(...request));
  const loginUrl = options.loginUrl.replace(/\/$/, "");
  let refreshing: Promise<void> | undefined;

  function address(path: string, query: Record<string, string>): string {
    return `${loginUrl}${path}?${new URLSearchParams(query)}`;
  }

  function post(path: string, form: Record<string, string>): Promise<Response> {
    return send(`${loginUrl}${path}`, { method: "POST", body: new URLSearchParams({ client_id: clientId, ...form }) });
  }

  async function request(form: Record<string, string>): Promise<Issued> {
    const response = await post("/oauth2/token", form);
    const body = await response.json().catch(() => ({}));
    if (!response.ok) throw new AuthError(body.error ?? `status ${response.status}`, body.error_description);
    return body;
  }

  function held(): Tokens | undefined {
    return JSON.parse(store.getItem(TOKENS) ?? "null") ?? undefined;
  }

  function keep(issued: Issued): void {
    const received = Date.now();
    const tokens: Tokens = { ...issued, received, expires: received + issued.expires_in * 1000 };
    store.setItem(TOKENS, JSON.stringify(tokens));
  }

  async function refresh(refresh_token: string): Promise<void> {
    // A sign-out or another sign-in may happen meanwhile.
    const isCurrent = () => held()?.refresh_token === refresh_token;
    try {
      const issued = await request({ grant_type: "refresh_token", refresh_token });
      // Cognito returns a new refresh token only if the pool rotates them.
      if (isCurrent()) keep({ refresh_token, ...issued });
    } catch (error) {
      if (!(error instanceof AuthError && error.code === "invalid_grant")) throw error;
      if (isCurrent()) store.removeItem(TOKENS);
    }
  }

  return {
    async begin(returnTo) {
      const [verifier, state] = [random(), random()];
      store.setItem(SIGN_IN, JSON.stringify({ verifier, state, returnTo }));
      return address("/oauth2/authorize", {
        response_type: "code",
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: scopes.join(" "),
        state,
        code_challenge: await sha256(verifier),
        code_challenge_method: "S256",
      });
    },
    async finish(url) {
      const query = new URL(url).searchParams;
      const [code, state, error] = ["code", "state", "error"].map((name) => query.get(name));
      if (!state || !(code || error)) return undefined;
      const begun = JSON.parse(store.getItem(SIGN_IN) ?? "null");
      // Otherwise somebody else's link could sign the visitor in to another account.
      if (begun?.state !== state) throw new AuthError("state_mismatch");
      store.removeItem(SIGN_IN);
      if (error || !code) throw new AuthError(error ?? "invalid_response", query.get("error_description"));
      const grant = { grant_type: "authorization_code", redirect_uri: redirectUri };
      keep(await request({ ...grant, code, code_verifier: begun.verifier }));
      return { returnTo: begun.returnTo };
    },
    async token() {
      const tokens = held();
      if (!tokens) return undefined;
      const now = Date.now();
      const margin = Math.min(MARGIN, (tokens.expires - tokens.received) / 2);
      // A time before the receipt means that somebody has set the clock back.
      if (tokens.received <= now && now < tokens.expires - margin) return tokens[use];
      if (!tokens.refresh_token) {
        if (now < tokens.expires) return tokens[use];
        store.removeItem(TOKENS);
        return undefined;
      }
      refreshing ??= refresh(tokens.refresh_token).finally(() => {
        refreshing = undefined;
      });
      await refreshing;
      return held()?.[use];
    },
    async signOut() {
      const token = held()?.refresh_token;
      store.removeItem(TOKENS);
      // Without an answer the refresh token stays valid, but this device has forgotten it.
      if (token) await post("/oauth2/revoke", { token }).catch(() => undefined);
      return address("/logout", { client_id: clientId, logout_uri: signedOutUri });
    },
  };
}

/** Returns tokens of the local system, which signs everybody in under any id. */
export function localToken(
  baseUrl: string,
  claims: { sub: string; groups?: string[]; email?: string; sid?: string },
): () => Promise<string> {
  let token: Promise<string> | undefined;
  const request = async () => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${baseUrl}/_local/tokens`, { method: "POST", headers, body: JSON.stringify(claims) });
    if (!response.ok) throw new AuthError(`status ${response.status}`, await response.text());
    return ((await response.json()) as { token: string }).token;
  };
  // A token is valid for 12 hours, longer than a page of a developer stays open.
  return () =>
    (token ??= request().catch((error: unknown) => {
      token = undefined;
      throw error;
    }));
}

function memory(): Store {
  const values = new Map<string, string>();
  return {
    getItem: (name) => values.get(name) ?? null,
    setItem: (name, value) => void values.set(name, value),
    removeItem: (name) => void values.delete(name),
  };
}

/** Returns 256 random bits. */
function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

async function sha256(text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
