import { ProblemError, unwrap } from "@bodega/client";
import { api, type Schemas } from "../lib/api";
import { hasCode } from "../lib/problems";
import { session } from "../lib/session.svelte";
import { store, stored } from "../lib/storage";
import { access, cart, type Guest } from "./cart.svelte";
import { keepToken, thank } from "./orders";

export interface Wishes {
  address: Schemas["NewOrderAddress"];
  codes: string[];
  method?: string | undefined;
}

export async function quote(wishes: Wishes): Promise<Schemas["Quote"]> {
  const offer = await offered(wishes);
  // The cart still exists, so an order whose answer was lost was not placed, and the new wishes replace it.
  store("checkout", undefined);
  return offer;
}

async function offered({ address, codes, method }: Wishes): Promise<Schemas["Quote"]> {
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

/** A request for an order as it was sent, until its answer is stored. */
interface Attempt {
  quote: string;
  key: string;
  contact: { email: string; name: string };
  /** The cart of a visitor. The page may forget it while the answer is under way. */
  guest?: Guest;
}

/** Returns whether an order was sent from here whose answer the page has not seen. */
export function isPending(): boolean {
  const attempt = stored<Attempt>("checkout");
  return !!attempt && !!(attempt.guest ?? session.person);
}

/** Places the order and returns its id. */
export function place(quote: string, contact: Attempt["contact"]): Promise<string> {
  const { guest } = cart;
  if (!session.person && !guest) throw new Error("a visitor orders a guest cart");
  // A repeated click has the same key, so that nothing is ordered twice.
  const before = stored<Attempt>("checkout");
  const key = before?.quote === quote ? before.key : crypto.randomUUID();
  store("checkout", { quote, key, contact, ...(guest ? { guest } : {}) } satisfies Attempt);
  return resume();
}

/** Sends the pending order again, as it was. The API repeats its first answer. */
export async function resume(): Promise<string> {
  const attempt = stored<Attempt>("checkout");
  if (!attempt) throw new Error("no order is pending");
  try {
    const order = await send(attempt);
    thank(order);
    store("checkout", undefined);
    // The browser may have a further cart since.
    if (cart.guest?.id === attempt.guest?.id) cart.forget();
    return order;
  } catch (error) {
    if (isRefusal(error)) store("checkout", undefined);
    throw error;
  }
}

async function send({ quote: quote_id, key, contact, guest }: Attempt): Promise<string> {
  const once = { "Idempotency-Key": key };
  if (!guest) {
    const params = { path: { id: "me" }, header: once };
    return unwrap(await api.POST("/v1/customers/{id}/cart/checkout", { params, body: { quote_id } })).id;
  }
  const { path, header } = access(guest);
  const params = { path, header: { ...header, ...once } };
  const order = unwrap(await api.POST("/v1/carts/{id}/checkout", { params, body: { quote_id, ...contact } }));
  keepToken(order.id, order.order_token);
  return order.id;
}

/** Returns whether the order was certainly not placed. Otherwise the same request can still succeed. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ProblemError &&
  error.status < 500 &&
  ![401, 408, 429].includes(error.status) &&
  !hasCode(error, "idempotency_in_progress");
