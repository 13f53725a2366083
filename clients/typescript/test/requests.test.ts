import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, isProblem, pages, ProblemError, unwrap, versioned } from "@bodega/client";
import { system, watched } from "./system.js";

const local = system();
const price = { amount: 100, currency: "USD" };

async function product(id: string, stock = 100): Promise<void> {
  const body = { id, name: id, brand: "B", category_path: ["C"], price, stock };
  unwrap(await local.staff().POST("/v1/products", { body }));
}

async function customer(id: string): Promise<void> {
  const body = { email: `${id}@example.com`, username: id, name: id };
  unwrap(await local.client({ sub: id }).POST("/v1/customers", { body }));
}

const order = (id: string, product: string) => ({ body: { customer_id: id, lines: [{ product_id: product, quantity: 1 }] } });
const keys = (requests: Request[]) => new Set(requests.map((request) => request.headers.get("idempotency-key")));

/** Answers the first requests itself, and then passes requests on. */
function failing(...answers: (() => Response | Promise<never>)[]) {
  const rest = [...answers];
  return watched(async (request) => (await rest.shift()?.()) ?? fetch(request));
}

const answer = (status: number, body?: object, headers?: Record<string, string>) => () =>
  new Response(body ? JSON.stringify(body) : null, { status, headers: headers ?? {} });

test("an order is placed once although its function was throttled and a response was lost", async () => {
  await product("lamp");
  await customer("lea");
  await local.control("POST", "faults", { target: "function:Orders", kind: "throttle", count: 2 });
  let lost = 0;
  const { requests, fetch } = watched(async (request) => {
    const response = await globalThis.fetch(request);
    if (response.status !== 201 || lost++ > 0) return response;
    throw new TypeError("the connection was lost");
  });
  const placed = await local.client({ sub: "lea" }, { fetch }).POST("/v1/orders", order("lea", "lamp"));
  assert.equal(placed.response.status, 201);
  assert.equal(placed.response.headers.get("idempotency-replayed"), "true");
  const sent = requests.filter((request) => request.url.endsWith("/v1/orders"));
  assert.equal(sent.length, 4);
  assert.equal(keys(sent).size, 1);
  assert.match([...keys(sent)][0] ?? "", /^[0-9a-f-]{36}$/);
  assert.equal(new Set(await Promise.all(sent.map((request) => request.text()))).size, 1);
  const lea = local.client({ sub: "lea" });
  const orders = unwrap(await lea.GET("/v1/customers/{id}/orders", { params: { path: { id: "lea" } } }));
  assert.equal(orders.items.length, 1);

  await local.client({ sub: "lea" }, { fetch }).POST("/v1/orders", order("lea", "lamp"));
  assert.equal(keys(requests).size, 2, "two orders have two keys");
});

test("a throttled table is repeated after Retry-After", async () => {
  await product("desk");
  await local.control("POST", "faults", { target: "table", kind: "throttle", key: "PRODUCT#desk" });
  const statuses: number[] = [];
  const fetch = async (request: Request) => {
    const response = await globalThis.fetch(request);
    statuses.push(response.status);
    await local.control("DELETE", "faults");
    return response;
  };
  const began = performance.now();
  const read = await local.client(undefined, { fetch }).GET("/v1/products/{id}", { params: { path: { id: "desk" } } });
  assert.equal(unwrap(read).id, "desk");
  assert.deepEqual(statuses, [503, 200]);
  assert.ok(performance.now() - began >= 1000, "Retry-After is one second");
});

test("a request that could take effect twice is sent once", async () => {
  const body = { body: { email: "once@example.com", username: "once", name: "Once" } };
  const lost = () => Promise.reject(new TypeError("lost"));
  for (const first of [answer(503), answer(429, { message: "Too Many Requests" }), lost]) {
    const { requests, fetch } = failing(first);
    const sent = await Promise.allSettled([local.client(undefined, { fetch }).POST("/v1/customers", body)]);
    assert.equal(sent[0].status, first === lost ? "rejected" : "fulfilled");
    assert.equal(requests.length, 1);
  }
});

test("only temporary failures are repeated", async () => {
  const read = (fetch: (request: Request) => Promise<Response>) =>
    local.client(undefined, { fetch }).GET("/v1/categories").then(({ response }) => response.status);
  for (const temporary of [
    answer(429, { message: "Too Many Requests" }),
    answer(502),
    answer(503, { message: "Service Unavailable" }),
    answer(504),
    answer(503, { code: "throttled" }),
    answer(409, { code: "idempotency_in_progress" }),
    () => Promise.reject(new TypeError("lost")),
  ]) {
    const { requests, fetch } = failing(temporary, temporary);
    assert.equal(await read(fetch), 200);
    assert.equal(requests.length, 3);
  }
  for (const [status, code] of [
    [503, "maintenance"],
    [503, "search_disabled"],
    [429, "quota_exceeded"],
    [409, "conflict"],
    [500, "internal"],
    [412, "version_mismatch"],
  ] as const) {
    const { requests, fetch } = failing(answer(status, { code }, { "retry-after": "1" }));
    assert.equal(await read(fetch), status);
    assert.equal(requests.length, 1, code);
  }
});

test("attempts and time are bounded and an abort ends the wait", async () => {
  const down = () => Promise.reject(new TypeError("down"));
  const always = watched(down);
  const retry = { attempts: 3, wait: 1 };
  await assert.rejects(createClient({ baseUrl: local.url, retry, fetch: always.fetch }).GET("/v1/categories"), /down/);
  assert.equal(always.requests.length, 3);

  // The wait would end after the limit, so the response is returned at once.
  const busy = watched(async () => answer(503, { code: "throttled" }, { "retry-after": "5" })());
  const began = performance.now();
  const hurried = createClient({ baseUrl: local.url, retry: { limit: 2_000 }, fetch: busy.fetch });
  assert.equal((await hurried.GET("/v1/categories")).response.status, 503);
  assert.equal(busy.requests.length, 1);

  const silent = (request: Request) =>
    new Promise<Response>((_, reject) => request.signal.addEventListener("abort", () => reject(request.signal.reason)));
  // Only an open connection keeps Node waiting, which this `fetch` does not have.
  const open = setInterval(() => undefined, 1_000);
  const stuck = createClient({ baseUrl: local.url, retry: { limit: 50 }, fetch: silent });
  await assert.rejects(stuck.GET("/v1/categories"), { name: "TimeoutError" });
  clearInterval(open);

  const controller = new AbortController();
  const waiting = watched(async () => answer(503, { code: "throttled" }, { "retry-after": "30" })());
  setTimeout(() => controller.abort(), 50);
  const patient = createClient({ baseUrl: local.url, fetch: waiting.fetch });
  await assert.rejects(patient.GET("/v1/categories", { signal: controller.signal }), { name: "AbortError" });
  assert.equal(waiting.requests.length, 1);
  assert.ok(performance.now() - began < 20_000);
});

test("a change applies to the version that was seen and a conflict shows the newer one", async () => {
  await customer("cleo");
  const { requests, fetch } = watched();
  const cleo = local.client({ sub: "cleo" }, { fetch });
  const path = { id: "me" };
  const profile = () => versioned((init) => cleo.GET("/v1/customers/{id}", { params: { path }, ...init }));
  const rename = (name: string) => (header: { "If-Match": string }) =>
    cleo.PATCH("/v1/customers/{id}", { params: { path, header }, body: { name } });
  const [phone, laptop] = [profile(), profile()];
  await assert.rejects(phone.change(rename("X")), /read the resource/);
  assert.equal((await phone.read()).name, "cleo");
  assert.equal((await laptop.read()).name, "cleo");

  const first = await phone.change(rename("Cleo One"));
  assert.ok(!first.conflict && first.data.name === "Cleo One");
  const second = await laptop.change(rename("Cleo Two"));
  assert.ok(second.conflict && second.problem.code === "version_mismatch");
  assert.equal((await laptop.read()).name, "Cleo One");
  assert.equal((await laptop.change(rename("Cleo Two"))).conflict, false);

  // The phone can change its own last version again after it has read the newest one.
  assert.equal((await phone.read()).name, "Cleo Two");
  for (const name of ["A", "B"]) assert.equal((await phone.change(rename(name))).conflict, false);
  const tags = requests.filter((request) => request.method === "PATCH").map((request) => request.headers.get("if-match"));
  assert.deepEqual(tags, ['"1"', '"1"', '"2"', '"3"', '"4"']);
  await assert.rejects(phone.change(rename("")), (error) => error instanceof ProblemError && error.status === 422);
});

test("an unchanged resource is not transferred again", async () => {
  await product("vase");
  const statuses: number[] = [];
  const fetch = async (request: Request) => {
    const response = await globalThis.fetch(request);
    statuses.push(response.status);
    return response;
  };
  const shop = local.client(undefined, { fetch });
  const vase = versioned((init) => shop.GET("/v1/products/{id}", { params: { path: { id: "vase" } }, ...init }));
  const [first, again] = [await vase.read(), await vase.read()];
  assert.deepEqual(again, first);
  assert.deepEqual(statuses, [200, 304]);
});

test("a list is read page by page until its end or the maximum", async () => {
  for (let n = 0; n < 7; n++) await product(`cup-${n}`);
  const { requests, fetch } = watched();
  const shop = local.client(undefined, { fetch });
  const cups = async (init: { max: number; limit?: number }) => {
    requests.length = 0;
    const params = { path: { path: "C" }, query: { ...(init.limit ? { limit: init.limit } : {}) } };
    const ids: string[] = [];
    for await (const item of pages(shop, "/v1/categories/{path}/products", { params, max: init.max })) {
      if (item.id.startsWith("cup-")) ids.push(item.id);
    }
    return ids;
  };
  const all = await cups({ max: 1_000 });
  assert.equal(new Set(all).size, 7);
  assert.equal(requests.length, 1);
  assert.deepEqual(await cups({ max: 1_000, limit: 2 }), all);
  assert.ok(requests.length >= 4);
  requests.length = 0;
  const first: string[] = [];
  const three = { params: { path: { path: "C" }, query: { limit: 2 } }, max: 3 };
  for await (const item of pages(shop, "/v1/categories/{path}/products", three)) first.push(item.id);
  assert.equal(first.length, 3);
  assert.equal(requests.length, 2);

  requests.length = 0;
  for await (const _ of pages(shop, "/v1/categories/{path}/products", { ...three, max: 100 })) break;
  assert.equal(requests.length, 1, "a loop that stops requests no further page");

  const wrong = pages(shop, "/v1/categories", { params: { query: { cursor: "x" } }, max: 10 });
  const isInvalid = (error: unknown) => error instanceof ProblemError && isProblem(error.problem, "cursor_invalid");
  await assert.rejects(wrong.next(), isInvalid);
});

test("a token is sent only where a route reads it", async () => {
  await customer("tom");
  const { requests, fetch } = watched();
  const tom = local.client({ sub: "tom" }, { fetch });
  unwrap(await tom.GET("/v1/categories"));
  unwrap(await tom.GET("/v1/customers/{id}", { params: { path: { id: "me" } } }));
  assert.deepEqual(requests.map((request) => request.headers.has("authorization")), [false, true]);
});
