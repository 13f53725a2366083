// A customer and a member of staff use only the client that is generated from openapi.yaml. If
// openapi.yaml lacks something, this file does not compile. If it is wrong, an assertion fails.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Order = components["schemas"]["Order"];
type Problem = components["schemas"]["Problem"];

const [url, ann, staffToken] = process.argv.slice(2);
assert.ok(url && ann && staffToken, "usage: shop.js <url> <token of ann> <token of staff>");

const client = (token?: string) => createClient<paths>({ baseUrl: url, headers: token ? { authorization: `Bearer ${token}` } : {} });
const [anybody, customer, staff] = [client(), client(ann), client(staffToken)];
const run = randomUUID();
const id = "ann";

/** Returns the data of a response, which must have this status. */
function taken<T>(answer: { data?: T; error?: unknown; response: Response }, status: number): T {
  assert.equal(answer.response.status, status, JSON.stringify(answer.error));
  return answer.data as T;
}

function refused(answer: { error?: Problem | { message: string } | undefined; response: Response }, status: number, code: Problem["code"]): Problem {
  assert.equal(answer.response.status, status, JSON.stringify(answer.error));
  assert.ok(answer.error && "code" in answer.error && answer.error.code === code, JSON.stringify(answer.error));
  return answer.error;
}

// Ann signs up, and her token has her id. A second run finds her profile.
const body = { email: "ann@example.com", username: "ann", name: "Ann Ångström", place: { country: "DE", city: "Ulm" } };
const signed = await customer.POST("/v1/customers", { body });
if (signed.response.status === 201) {
  assert.equal(signed.data?.id, id);
} else {
  refused(signed, 409, "already_exists");
}

// Staff creates two products in a category of this run.
const products = [];
for (const [name, stock] of [["Ice", 10], ["Salt", 2]] as const) {
  const body = { name: `${name} ${run}`, brand: "Private", category_path: ["GROCERY", run], price: { amount: 129, currency: "USD" }, stock };
  products.push(taken(await staff.POST("/v1/products", { body }), 201));
}
const [ice, salt] = products;
assert.ok(ice && salt);
refused(await customer.POST("/v1/products", { body: { name: "N", brand: "B", category_path: ["C"], price: { amount: 1, currency: "USD" }, stock: 1 } }), 403, "forbidden");
const shown = taken(await anybody.GET("/v1/products/{id}", { params: { path: { id: ice.id } } }), 200);
assert.deepEqual([shown.price, shown.availability, shown.stock], [{ amount: 129, currency: "USD" }, "plenty", undefined]);
const numbers = taken(await staff.GET("/v1/products/{id}/numbers", { params: { path: { id: ice.id } } }), 200);
assert.equal(numbers.stock, 10);

// A change needs the version on which it is based.
const renamed = { params: { path: { id: ice.id }, header: { "If-Match": `"${ice.version}"` } }, body: { summary: "Cold." } };
const changed = taken(await staff.PATCH("/v1/products/{id}", renamed), 200);
assert.equal(changed.version, ice.version + 1);
refused(await staff.PATCH("/v1/products/{id}", renamed), 412, "version_mismatch");

// Ann fills the cart, gets its price and checks it out at this price.
for (const [product, quantity] of [[ice, 2], [salt, 1]] as const) {
  const line = { params: { path: { id, product: product.id } }, body: { quantity } };
  taken(await customer.PUT("/v1/customers/{id}/cart/items/{product}", line), 200);
}
const quote = taken(await customer.POST("/v1/customers/{id}/cart/quote", { params: { path: { id } }, body: {} }), 200);
const checkout = { params: { path: { id } }, body: { quote_id: quote.id } };
const order: Order = taken(await customer.POST("/v1/customers/{id}/cart/checkout", checkout), 201);
assert.deepEqual(order.totals, quote.totals);
assert.deepEqual(order.total, { amount: 3 * 129, currency: "USD" });
assert.deepEqual(new Set(order.lines.map((line) => line.product_id)), new Set([ice.id, salt.id]));

// The same order sent twice is one order. Another order under the same key is refused. If the stock
// is too low, the refusal has an error for each line.
const key = createHash("sha256").update(run).digest("hex");
const header = { "Idempotency-Key": key };
const place = (quantity: number) => customer.POST("/v1/orders", { params: { header }, body: { customer_id: id, lines: [{ product_id: salt.id, quantity }] } });
const [first, again] = [await place(1), await place(1)];
assert.equal(taken(first, 201).id, taken(again, 201).id);
assert.equal(again.response.headers.get("idempotency-replayed"), "true");
refused(await place(2), 422, "idempotency_key_reused");
header["Idempotency-Key"] = `${key}-more`;
const short = refused(await place(5), 409, "insufficient_stock");
assert.deepEqual(short.errors?.map((error) => error.pointer), ["/lines/0/quantity"]);

// Ann reads all orders, page by page.
const ids: string[] = [];
let cursor: string | null = null;
do {
  const query: { limit: number; cursor?: string } = cursor === null ? { limit: 1 } : { limit: 1, cursor };
  const page: components["schemas"]["OrderPage"] = taken(await customer.GET("/v1/customers/{id}/orders", { params: { path: { id }, query } }), 200);
  ids.push(...page.items.map((item) => item.id));
  cursor = page.next_cursor;
} while (cursor !== null);
assert.equal(new Set(ids).size, ids.length);
assert.ok(ids.includes(order.id) && ids.includes(taken(first, 201).id));

// Ann cancels the order, and the goods are in stock again.
const version = taken(await customer.GET("/v1/orders/{id}", { params: { path: { id: order.id } } }), 200).version;
const cancelled = { params: { path: { id: order.id }, header: { "If-Match": `"${version}"` } }, body: { to: "cancelled" as const } };
assert.equal(taken(await customer.POST("/v1/orders/{id}/status", cancelled), 200).status, "cancelled");
assert.equal(taken(await staff.GET("/v1/products/{id}/numbers", { params: { path: { id: ice.id } } }), 200).stock, 10);

// A request without a token is refused.
assert.equal((await anybody.GET("/v1/orders/{id}", { params: { path: { id: order.id } } })).response.status, 401);
console.log("client: signed up, bought, was refused, paged and cancelled");
