import { unwrap } from "@bodega/client";
import { api, type Schemas } from "../lib/api";
import { hasCode } from "../lib/problems";
import { forget } from "../lib/resource.svelte";
import { type Person, session } from "../lib/session.svelte";
import { store, stored } from "../lib/storage";
import { cart } from "./cart.svelte";

const me = { path: { id: "me" } };

/** Returns the profile of the customer, or `undefined` before it is created. */
export async function profile(): Promise<Schemas["Customer"] | undefined> {
  try {
    return unwrap(await api.GET("/v1/customers/{id}", { params: me, cache: "no-store" }));
  } catch (error) {
    if (!hasCode(error, "not_found", "account_not_found")) throw error;
    return undefined;
  }
}

export async function createProfile({ name, email }: Required<Person>): Promise<Schemas["Customer"]> {
  const create = (username: string) => api.POST("/v1/customers", { body: { email, name, username } });
  const first = await create(name);
  const taken = first.error && "code" in first.error && first.error.code === "username_taken";
  return unwrap(taken ? await create(`${name} ${Math.random().toString(36).slice(2, 7)}`) : first);
}

/** Begins the visit of a customer who has a profile: names the person and brings the cart along. */
export async function welcome({ name, email }: Schemas["Customer"]): Promise<void> {
  forget();
  session.set({ name, email });
  await Promise.all([cart.claim().catch(() => undefined), record().catch(() => undefined)]);
}

/** Without the record, a sign-out could not end the tokens of this browser. */
async function record(): Promise<void> {
  const body = { device: "Browser" };
  store("session", unwrap(await api.POST("/v1/customers/{id}/sessions", { params: me, body })).id);
}

export async function leave(): Promise<void> {
  const id = stored<string>("session");
  if (id) await api.DELETE("/v1/sessions/{id}", { params: { path: { id } } }).catch(() => undefined);
  const issuer = await session.signOut();
  forget();
  cart.forget();
  store("checkout", undefined);
  store("form", undefined, "sessionStorage");
  if (issuer) location.assign(issuer);
}
