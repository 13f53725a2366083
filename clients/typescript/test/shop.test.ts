// Customers, a visitor and a member of staff use only the client. If openapi.yaml lacks something,
// this file does not compile. If it is wrong, an assertion fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Code, type components, isProblem, pages, type Problem, type Result, unwrap } from "@bodega/client";
import { CODES } from "./generated/bodies.js";
import { readme } from "./generated/readme.js";
import { system } from "./system.js";

const local = system();
const address = { name: "Vera", line1: "Am See 1", city: "Ulm", postal_code: "89073", country: "DE" };

/** Returns the data of a response, which must have this status. */
function taken<T>(answer: Result<T>, status: number): T {
  assert.equal(answer.response.status, status, JSON.stringify(answer.error));
  return unwrap(answer);
}

function refused<C extends Code>(answer: Result<unknown>, status: number, code: C): Problem<C> {
  assert.equal(answer.response.status, status, JSON.stringify(answer.error));
  assert.ok(isProblem(answer.error, code), JSON.stringify(answer.error));
  return answer.error;
}

test("a customer signs up, buys, is refused, reads pages and cancels", async () => {
  const [anybody, customer, staff] = [local.client(), local.client({ sub: "ann" }), local.staff()];
  const id = "ann";
  const body = { email: "ann@example.com", username: "ann", name: "Ann Ångström", place: { country: "DE", city: "Ulm" } };
  assert.equal(taken(await customer.POST("/v1/customers", { body }), 201).id, id);
  refused(await customer.POST("/v1/customers", { body }), 409, "already_exists");

  const products: components["schemas"]["Product"][] = [];
  for (const [name, stock] of [["Ice", 10], ["Salt", 2]] as const) {
    const body = { name, brand: "Private", category_path: ["GROCERY"], price: { amount: 129, currency: "USD" }, stock };
    products.push(taken(await staff.POST("/v1/products", { body }), 201));
  }
  const [ice, salt] = products;
  assert.ok(ice && salt);
  const foreign = { name: "N", brand: "B", category_path: ["C"], price: { amount: 1, currency: "USD" }, stock: 1 };
  refused(await customer.POST("/v1/products", { body: foreign }), 403, "forbidden");
  const shown = taken(await anybody.GET("/v1/products/{id}", { params: { path: { id: ice.id } } }), 200);
  assert.deepEqual([shown.price, shown.availability, shown.stock], [{ amount: 129, currency: "USD" }, "plenty", undefined]);
  const numbers = { params: { path: { id: ice.id } } };
  assert.equal(taken(await staff.GET("/v1/products/{id}/numbers", numbers), 200).stock, 10);
  const both = taken(await anybody.GET("/v1/products", { params: { query: { ids: [ice.id, salt.id] } } }), 200);
  assert.deepEqual(both.items.map((item) => item.id).sort(), [ice.id, salt.id].sort());

  // A change needs the version on which it is based.
  const renamed = { params: { path: { id: ice.id }, header: { "If-Match": `"${ice.version}"` } }, body: { summary: "Cold." } };
  assert.equal(taken(await staff.PATCH("/v1/products/{id}", renamed), 200).version, ice.version + 1);
  refused(await staff.PATCH("/v1/products/{id}", renamed), 412, "version_mismatch");

  // Ann fills the cart, gets its price and checks it out at this price.
  for (const [product, quantity] of [[ice, 2], [salt, 1]] as const) {
    const line = { params: { path: { id, product: product.id } }, body: { quantity } };
    taken(await customer.PUT("/v1/customers/{id}/cart/items/{product}", line), 200);
  }
  const quote = taken(await customer.POST("/v1/customers/{id}/cart/quote", { params: { path: { id } }, body: {} }), 200);
  const checkout = { params: { path: { id } }, body: { quote_id: quote.id } };
  const order = taken(await customer.POST("/v1/customers/{id}/cart/checkout", checkout), 201);
  assert.deepEqual(order.totals, quote.totals);
  assert.deepEqual(order.total, { amount: 3 * 129, currency: "USD" });
  assert.deepEqual(new Set(order.lines.map((line) => line.product_id)), new Set([ice.id, salt.id]));

  // The same order sent twice is one order. Another order under the same key is refused. If the stock
  // is too low, the refusal has an error for each line.
  const place = (key: string, quantity: number) =>
    customer.POST("/v1/orders", {
      params: { header: { "Idempotency-Key": key } },
      body: { customer_id: id, lines: [{ product_id: salt.id, quantity }] },
    });
  const [first, again] = [await place("first", 1), await place("first", 1)];
  assert.equal(taken(first, 201).id, taken(again, 201).id);
  assert.equal(again.response.headers.get("idempotency-replayed"), "true");
  refused(await place("first", 2), 422, "idempotency_key_reused");
  const short = refused(await place("second", 5), 409, "insufficient_stock");
  assert.deepEqual(short.errors?.map((error) => error.pointer), ["/lines/0/quantity"]);

  const ids: string[] = [];
  const mine = { params: { path: { id }, query: { limit: 1 } }, max: 10 };
  for await (const item of pages(customer, "/v1/customers/{id}/orders", mine)) ids.push(item.id);
  assert.deepEqual(new Set(ids), new Set([order.id, taken(first, 201).id]));
  assert.equal(ids.length, 2);

  // Ann cancels the order, and the goods are in stock again.
  const path = { id: order.id };
  const { version } = taken(await customer.GET("/v1/orders/{id}", { params: { path } }), 200);
  const cancelled = { params: { path, header: { "If-Match": `"${version}"` } }, body: { to: "cancelled" as const } };
  assert.equal(taken(await customer.POST("/v1/orders/{id}/status", cancelled), 200).status, "cancelled");
  assert.equal(taken(await staff.GET("/v1/products/{id}/numbers", numbers), 200).stock, 10);

  const unknown = await anybody.GET("/v1/orders/{id}", { params: { path } });
  assert.equal(unknown.response.status, 401);
  assert.ok(!isProblem(unknown.error));
});

test("the examples of the README run", async () => {
  const price = { amount: 349, currency: "USD" };
  const body = { id: "tea", name: "Green tea", brand: "Leaf", category_path: ["TEA"], price, stock: 50 };
  taken(await local.staff().POST("/v1/products", { body }), 201);
  const printed: unknown[][] = [];
  const print = (...values: unknown[]) => void printed.push(values);
  await readme(local.url, { log: print, error: print });
  assert.deepEqual(printed.slice(0, 2), [["Green tea", 349], ["Sign in instead."]]);
  assert.ok(printed.some(([shown]) => shown === true));
  assert.ok(!printed.some(([shown]) => String(shown).startsWith("Somebody")), JSON.stringify(printed));
});

// The shipping zone makes a quote necessary, so this test is after those that order without one.
test("a visitor orders a guest cart without an account", async () => {
  const [visitor, staff] = [local.client(), local.staff()];
  const body = { id: "jam", name: "Jam", brand: "B", category_path: ["FOOD"], price: { amount: 250, currency: "USD" }, stock: 5 };
  taken(await staff.POST("/v1/products", { body }), 201);
  const rates = [{ price: { amount: 490, currency: "USD" } }];
  const zone = { countries: ["DE"], methods: [{ id: "parcel", name: "Parcel", days: [1, 3], rates }] };
  const create = { path: { id: "germany" }, header: { "If-None-Match": "*" as const } };
  taken(await staff.PUT("/v1/shipping/zones/{id}", { params: create, body: zone }), 201);

  const cart = taken(await visitor.POST("/v1/carts"), 201);
  const header = { "Cart-Token": cart.token };
  const line = { params: { path: { id: cart.id, product: "jam" }, header }, body: { quantity: 2 } };
  taken(await visitor.PUT("/v1/carts/{id}/items/{product}", line), 200);
  const params = { path: { id: cart.id }, header };
  const quote = taken(await visitor.POST("/v1/carts/{id}/quote", { params, body: { shipping_address: address } }), 200);
  const checkout = { params, body: { quote_id: quote.id, email: "vera@example.com", name: "Vera" } };
  const placed = taken(await visitor.POST("/v1/carts/{id}/checkout", checkout), 201);
  assert.deepEqual(placed.total, { amount: 2 * 250 + 490, currency: "USD" });

  const own = { path: { id: placed.id }, header: { "Order-Token": placed.order_token } };
  const seen = taken(await visitor.GET("/v1/guest/orders/{id}", { params: own }), 200);
  assert.equal(seen.status, "pending");
  const guessed = { ...own, header: { "Order-Token": "x" } };
  refused(await visitor.GET("/v1/guest/orders/{id}", { params: guessed }), 404, "not_found");
});

test("each code of openapi.yaml narrows an error to its problem", () => {
  for (const code of Object.keys(CODES) as Code[]) {
    const error: unknown = { code, detail: "d" };
    assert.ok(isProblem(error, code) && isProblem(error));
    const same: typeof code = error.code;
    assert.equal(same, code);
    assert.ok(!isProblem(error, ...(Object.keys(CODES) as Code[]).filter((other) => other !== code)));
  }
  for (const error of [undefined, null, "text", { message: "Unauthorized" }, { code: 1 }]) assert.ok(!isProblem(error));
});

// These lines only have to compile. An error of a route has the codes of the route, and a
// `switch` over a problem knows all fields of the case.
export async function types(): Promise<string> {
  const { error } = await local.client().GET("/v1/products/{id}", { params: { path: { id: "x" } } });
  if (isProblem(error, "not_found")) {
    const code: "not_found" = error.code;
    return code;
  }
  // @ts-expect-error: no problem has this code
  isProblem(error, "no_such_code");
  // @ts-expect-error: a change needs the version on which it is based
  await local.client().DELETE("/v1/products/{id}", { params: { path: { id: "x" } } });
  // @ts-expect-error: a product is not a list
  pages(local.client(), "/v1/products/{id}", { params: { path: { id: "x" } }, max: 1 });
  // @ts-expect-error: the list needs the id of a customer
  pages(local.client(), "/v1/customers/{id}/orders", { max: 1 });
  return "";
}
