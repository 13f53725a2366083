import { unwrap } from "@bodega/client";
import { api, type Schemas } from "../lib/api";
import { session } from "../lib/session.svelte";
import { store, stored } from "../lib/storage";
import { access, cart } from "./cart.svelte";
import { keepToken } from "./orders";

export interface Wishes {
  address: Schemas["NewOrderAddress"];
  codes: string[];
  method?: string | undefined;
}

export async function quote({ address, codes, method }: Wishes): Promise<Schemas["Quote"]> {
  const wishes = { codes, ...(method ? { shipping_method: method } : {}) };
  const { guest } = cart;
  if (session.person) {
    const params = { path: { id: "me" } };
    const body = { shipping_address: address, ...wishes };
    return unwrap(await api.POST("/v1/customers/{id}/cart/quote", { params, body }));
  }
  if (!guest || typeof address === "string") throw new Error("a visitor orders a guest cart to a complete address");
  const body = { shipping_address: address, ...wishes };
  return unwrap(await api.POST("/v1/carts/{id}/quote", { params: access(guest), body }));
}

interface Attempt {
  quote: string;
  key: string;
}

/** Returns the key of this order, the same after a reload, so that nothing is ordered twice. */
function keyOf(quote: string): string {
  const attempt = stored<Attempt>("checkout");
  if (attempt?.quote === quote) return attempt.key;
  const key = crypto.randomUUID();
  store("checkout", { quote, key } satisfies Attempt);
  return key;
}

/** Places the order and returns its id. */
export async function place(quote: string, contact: { email: string; name: string }): Promise<string> {
  const key = { "Idempotency-Key": keyOf(quote) };
  const { guest } = cart;
  if (session.person) {
    const params = { path: { id: "me" }, header: key };
    const order = unwrap(await api.POST("/v1/customers/{id}/cart/checkout", { params, body: { quote_id: quote } }));
    return done(order.id);
  }
  if (!guest) throw new Error("a visitor orders a guest cart");
  const { path, header } = access(guest);
  const params = { path, header: { ...header, ...key } };
  const order = unwrap(await api.POST("/v1/carts/{id}/checkout", { params, body: { quote_id: quote, ...contact } }));
  keepToken(order.id, order.order_token);
  return done(order.id);
}

function done(order: string): string {
  store("checkout", undefined);
  cart.forget();
  return order;
}
