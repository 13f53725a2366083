// A server with the paths and the rules of Cognito's sign-in. Nobody has to type a password.
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export class Cognito {
  readonly clientId = "app";
  url = "";
  /** Seconds for which a token is valid. */
  lifetime = 3600;
  /** Whether a refresh token is valid once. */
  rotates = false;
  refreshes = 0;
  readonly refreshTokens = new Set<string>();
  /** Called when a refresh is decided and not yet answered. */
  delay = async () => {};
  #issued = 0;
  #codes = new Map<string, URLSearchParams>();
  #server = createServer((request, response) => void this.#answer(request, response));

  async start(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Returns the ID token of the customer who signs in. */
  issue = async () => `id-${this.#issued}`;

  /** Plays the sign-in page at a URL, and returns the URL that it redirects to. */
  approve(page: string): string {
    const query = new URL(page).searchParams;
    const code = randomUUID();
    this.#codes.set(code, query);
    return `${query.get("redirect_uri")}?${new URLSearchParams({ code, state: query.get("state") ?? "" })}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", this.url);
    response.setHeader("access-control-allow-origin", "*");
    const redirect = (location: string) => void response.writeHead(302, { location }).end();
    if (url.pathname === "/oauth2/authorize") return redirect(this.approve(url.href));
    if (url.pathname === "/logout") return redirect(url.searchParams.get("logout_uri") ?? "");
    let body = "";
    for await (const part of request) body += String(part);
    const form = new URLSearchParams(body);
    const reply = (status: number, value: object) =>
      void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    const isMine = request.method === "POST" && form.get("client_id") === this.clientId;
    if (!isMine) return reply(400, { error: "invalid_request" });
    if (url.pathname === "/oauth2/revoke") {
      this.refreshTokens.delete(form.get("token") ?? "");
      return void response.writeHead(200).end();
    }
    const kind = form.get("grant_type");
    if (kind === "authorization_code") {
      const begun = this.#codes.get(form.get("code") ?? "");
      this.#codes.delete(form.get("code") ?? "");
      const challenge = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
      const isSame = begun?.get("redirect_uri") === form.get("redirect_uri");
      const isValid = isSame && begun?.get("code_challenge") === challenge;
      return reply(...(isValid ? await this.#tokens(true) : refused));
    }
    this.refreshes++;
    const old = form.get("refresh_token") ?? "";
    const isValid = kind === "refresh_token" && this.refreshTokens.has(old);
    if (isValid && this.rotates) this.refreshTokens.delete(old);
    await this.delay();
    return reply(...(isValid ? await this.#tokens(this.rotates) : refused));
  }

  async #tokens(withRefresh: boolean): Promise<[number, object]> {
    this.#issued++;
    const tokens = { id_token: await this.issue(), access_token: `access-${this.#issued}`, expires_in: this.lifetime };
    if (!withRefresh) return [200, tokens];
    const refresh_token = randomUUID();
    this.refreshTokens.add(refresh_token);
    return [200, { ...tokens, refresh_token }];
  }
}

const refused: [number, object] = [400, { error: "invalid_grant" }];
