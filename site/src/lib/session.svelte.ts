import { type Auth, createAuth, localToken } from "@bodega/client";
import type { Config } from "./config";
import { onStored, store, stored } from "./storage";

/** What the site shows of the person who is signed in, without a request. */
export interface Person {
  name: string;
  email?: string;
}

interface LocalSignIn {
  sub: string;
  email?: string;
  sid: string;
  token?: string;
  until?: number;
}

/** A token of the local system is valid for 12 hours. */
const LOCAL_TOKEN = 11 * 3600 * 1000;

class Session {
  person = $state.raw(stored<Person>("person"));
  /** True after the API has refused the token. */
  expired = $state(false);
  #auth: Auth | undefined;
  #url = "";

  constructor() {
    onStored("person", () => (this.person = stored<Person>("person")));
  }

  start({ apiUrl, loginUrl, clientId }: Config): void {
    this.#url = apiUrl;
    if (!loginUrl || !clientId) return;
    const redirectUri = `${location.origin}/signin`;
    const signedOutUri = `${location.origin}/`;
    // A customer opens products in new tabs, which do not share sessionStorage.
    this.#auth = createAuth({ loginUrl, clientId, redirectUri, signedOutUri, store: localStorage });
  }

  async token(): Promise<string | undefined> {
    if (this.#auth) return this.#auth.token();
    const local = stored<LocalSignIn>("local");
    if (!local) return undefined;
    const { token: known, until = 0, ...claims } = local;
    if (known && Date.now() < until) return known;
    const token = await localToken(this.#url, claims)();
    store("local", { ...claims, token, until: Date.now() + LOCAL_TOKEN });
    return token;
  }

  /** Returns the address of the sign-in pages. */
  begin(returnTo: string): Promise<string> | undefined {
    return this.#auth?.begin(returnTo);
  }

  finish(): Promise<{ returnTo?: string } | undefined> {
    return this.#auth?.finish(location.href) ?? Promise.resolve(undefined);
  }

  signInLocally(sub: string, email: string): void {
    store("local", { sub, ...(email ? { email } : {}), sid: crypto.randomUUID() });
  }

  set(person: Person): void {
    this.person = person;
    this.expired = false;
    store("person", person);
  }

  expire(): void {
    if (!this.person) return;
    this.#forget();
    this.expired = true;
  }

  /** Returns the address of the page that ends the sign-in at the issuer. */
  async signOut(): Promise<string | undefined> {
    this.#forget();
    return this.#auth?.signOut();
  }

  #forget(): void {
    this.person = undefined;
    store("person", undefined);
    store("local", undefined);
    store("session", undefined);
  }
}

export const session = new Session();
