import { type Auth, createAuth, localToken, type Store } from "@bodega/client";
import type { Config } from "../lib/config";
import { onStored, store, stored } from "../lib/storage";

interface SignedIn {
  name: string;
}

interface LocalToken {
  token: string;
  until: number;
}

/** A token of the local system is valid for 12 hours. */
const LOCAL_TOKEN = 11 * 3600 * 1000;
const GROUP = "staff";

/** Keeps staff's tokens apart from the customer's, so that one browser can hold both. */
const apart: Store = {
  getItem: (name) => localStorage.getItem(`staff.${name}`),
  setItem: (name, value) => localStorage.setItem(`staff.${name}`, value),
  removeItem: (name) => localStorage.removeItem(`staff.${name}`),
};

class StaffSession {
  who = $state.raw(stored<SignedIn>("staff"));
  /** Why the API refused the last request: no valid token, or a token without the group. */
  refusal = $state<"expired" | "forbidden">();
  #auth: Auth | undefined;
  #url = "";

  constructor() {
    onStored("staff", () => (this.who = stored<SignedIn>("staff")));
  }

  start({ apiUrl, loginUrl, clientId }: Config): void {
    this.#url = apiUrl;
    if (!loginUrl || !clientId) return;
    const [redirectUri, signedOutUri] = ["/staff/signin", "/staff"].map((path) => location.origin + path);
    this.#auth = createAuth({ loginUrl, clientId, redirectUri: redirectUri!, signedOutUri: signedOutUri!, store: apart });
  }

  async token(): Promise<string | undefined> {
    if (this.#auth) return this.#auth.token();
    const local = stored<LocalToken>("staff-token");
    return local && Date.now() < local.until ? local.token : undefined;
  }

  /** Returns the address of the sign-in pages. */
  begin(returnTo: string): Promise<string> | undefined {
    return this.#auth?.begin(returnTo);
  }

  /** Ends a sign-in at the issuer's pages. Returns the page from which it began. */
  async finish(): Promise<string | undefined> {
    const back = await this.#auth?.finish(location.href);
    if (!back) return undefined;
    this.#set({ name: nameIn(await this.#auth?.token()) });
    return back.returnTo ?? "/staff";
  }

  async signInLocally(name: string): Promise<void> {
    const sub = name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60);
    const token = await localToken(this.#url, { sub, groups: [GROUP] })();
    store("staff-token", { token, until: Date.now() + LOCAL_TOKEN } satisfies LocalToken);
    this.#set({ name });
  }

  #set(who: SignedIn): void {
    this.who = who;
    this.refusal = undefined;
    store("staff", who);
  }

  refuse(reason: "expired" | "forbidden"): void {
    this.refusal = reason;
    if (reason === "expired") this.#forget();
  }

  /** Returns the address of the page that ends the sign-in at the issuer. */
  async signOut(): Promise<string | undefined> {
    this.#forget();
    this.refusal = undefined;
    return this.#auth?.signOut();
  }

  #forget(): void {
    this.who = undefined;
    store("staff", undefined);
    store("staff-token", undefined);
  }
}

/** Returns the email address in a token, which the API checks and this page only shows. */
function nameIn(token: string | undefined): string {
  try {
    const payload = (token?.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const claims = JSON.parse(atob(payload)) as { email?: string; sub?: string };
    return claims.email ?? claims.sub ?? "";
  } catch {
    return "";
  }
}

export const staff = new StaffSession();
