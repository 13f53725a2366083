// Staff run the shop of the demo, on a phone and on a desktop.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Client, unwrap } from "@bodega/client";
import type { Page } from "playwright-core";
import { picture } from "./picture.js";
import { Stage, type Visit } from "./visit.js";

let stage: Stage;
let sam: Client;

before(async () => {
  stage = await Stage.open("--demo");
  sam = stage.system.client({ sub: "sam", groups: ["staff"] });
  await stage.system.drain();
});

after(() => stage?.close());

const main = (page: Page) => page.locator("main");
const dialog = (page: Page) => page.getByRole("dialog");
const told = (page: Page, text: string | RegExp) => page.getByRole("status").getByText(text).first().waitFor();

async function signIn({ page }: Visit, path: string): Promise<void> {
  await page.goto(path);
  await page.getByLabel("Name").fill("Sam");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

async function listed(status: "paid" | "picking" | "delivered", index: number) {
  const params = { query: { status, limit: 20 } };
  const order = unwrap(await sam.GET("/v1/orders", { params })).items.at(index);
  assert.ok(order, `the demo has orders that are ${status}`);
  return order;
}

async function today(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByRole("heading", { name: "Today", level: 1 }).waitFor();
  const table = page.getByRole("table", { name: /^Sales/ });
  await table.waitFor({ state: "attached" });
  assert.equal(await table.locator("tbody tr").count(), 30);
  assert.match(await table.innerText(), /€\d/);
  await page.getByRole("heading", { name: "Best sellers of the week" }).waitFor();
  await visit.check("today");
}

/** Picks an order, and ships it with a tracking number that its customer sees. */
async function ship(visit: Visit, index: number): Promise<void> {
  const { page } = visit;
  const { id, number } = await listed("paid", index);
  const tracking = `TRACK-${number}`;
  await page.getByRole("navigation", { name: "Staff" }).getByRole("link", { name: "Orders" }).click();
  await page.getByRole("link", { name: number }).waitFor();
  await visit.check("orders");
  await page.getByRole("button", { name: `Start picking ${number}` }).click();
  await told(page, `${number}: picking.`);
  await page.getByRole("link", { name: "Picking", exact: true }).click();
  await page.getByRole("button", { name: `Ship ${number}` }).click();
  await dialog(page).getByLabel("Carrier").fill("Parcel Post");
  await dialog(page).getByLabel("Tracking number").fill(tracking);
  await visit.check("ship");
  await dialog(page).getByRole("button", { name: "Ship" }).click();
  await told(page, `${number}: shipped.`);
  const order = unwrap(await sam.GET("/v1/orders/{id}", { params: { path: { id } } }));
  assert.deepEqual([order.status, order.carrier, order.tracking], ["shipped", "Parcel Post", tracking]);

  await page.goto(`/staff/orders/${id}`);
  await page.getByText(tracking).waitFor();
  await page.getByRole("button", { name: "Issue the invoice" }).click();
  await page.getByText(/^No\. \d/).waitFor();
  await page.getByLabel("New line of the log").fill("Asked for a signature");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("Asked for a signature").waitFor();
  await visit.check("order");
}

async function refund(visit: Visit, index: number): Promise<void> {
  const { page } = visit;
  const { id } = await listed("delivered", index);
  await page.goto(`/staff/orders/${id}`);
  await page.getByRole("button", { name: "Refund" }).first().click();
  await dialog(page).getByLabel(/^Amount/).fill("1.50");
  await dialog(page).getByLabel("Reason").fill("Broken lid");
  await visit.check("refund");
  await dialog(page).getByRole("button", { name: "Give the money back" }).click();
  await told(page, "The refund is on its way.");
  const { items } = unwrap(await sam.GET("/v1/orders/{id}/payments", { params: { path: { id } } }));
  const refunds = items.flatMap(({ operations }) => operations).filter(({ kind }) => kind === "refund");
  assert.deepEqual(refunds.map(({ amount, reason }) => [amount.amount, reason]), [[150, "Broken lid"]]);
  await page.getByText("Refunded €1.50: Broken lid").waitFor();
}

/** Finds an order by its number, and meets an order that somebody else has moved on. */
async function findAndCollide(visit: Visit): Promise<void> {
  const { page } = visit;
  const { id, number, version } = await listed("paid", 0);
  await page.goto("/staff/orders");
  await page.getByRole("searchbox", { name: "Find orders" }).fill(number);
  await page.getByRole("searchbox", { name: "Find orders" }).press("Enter");
  await page.getByText(`1 order for “${number}”`).waitFor();
  const typed = number.toLowerCase().replace("-", "");
  await page.getByRole("searchbox", { name: "Find orders" }).fill(typed);
  await page.getByRole("searchbox", { name: "Find orders" }).press("Enter");
  await page.getByText(`1 order for “${typed}”`).waitFor();
  await page.getByRole("link", { name: number }).click();
  await page.getByRole("button", { name: "Start picking" }).waitFor();
  const params = { path: { id }, header: { "If-Match": `"${version}"` } };
  unwrap(await sam.POST("/v1/orders/{id}/status", { params, body: { to: "picking" } }));
  await page.getByRole("button", { name: "Start picking" }).click();
  await told(page, /Somebody else has changed this meanwhile/);
  await page.getByRole("button", { name: "Ship" }).waitFor();
  // The refused request is an error of the console.
  visit.problems.length = 0;
}

/** Changes a price and sees it in the shop, adjusts the stock, and meets a conflict. */
async function product(visit: Visit, id: string, price: string): Promise<void> {
  const { page } = visit;
  await page.goto("/staff/products");
  await main(page).getByRole("link", { name: /./ }).nth(4).waitFor();
  await visit.check("products");
  await page.goto(`/staff/products/${id}`);
  await page.getByLabel("Price").fill(price);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await told(page, "Saved.");
  await page.getByLabel("Add or remove pieces").fill("7");
  await page.getByLabel("Reason").fill("Delivery");
  const before = unwrap(await sam.GET("/v1/products/{id}/numbers", { params: { path: { id } } })).stock ?? 0;
  await page.getByRole("button", { name: "Adjust" }).click();
  await told(page, `Now ${before + 7} pieces in stock.`);
  await visit.check("product");

  const read = await sam.GET("/v1/products/{id}", { params: { path: { id } }, cache: "no-store" });
  const params = { path: { id }, header: { "If-Match": read.response.headers.get("etag")! } };
  unwrap(await sam.PATCH("/v1/products/{id}", { params, body: { brand: "Meanwhile" } }));
  await page.getByLabel("Package size").fill("1 piece");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("alert").getByText(/Somebody else has changed this/).waitFor();
  assert.equal(await page.getByLabel("Brand").inputValue(), "Meanwhile");
  visit.problems.length = 0;

  await page.getByRole("link", { name: "See it in the shop" }).click();
  await page.getByText(`€${price}`).first().waitFor();
}

/**
 * Lets the page send files to the bucket of the local system, whose policy and CorsOrigins do not
 * name the bucket and the site.
 */
async function permitUploads({ page, context }: Visit): Promise<void> {
  const devtools = await context.newCDPSession(page);
  await devtools.send("Page.setBypassCSP", { enabled: true });
  await page.route("**/bodega-media/pending/**", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, headers: { ...response.headers(), "access-control-allow-origin": "*" } });
  });
}

async function upload(visit: Visit, id: string): Promise<void> {
  const { page } = visit;
  await permitUploads(visit);
  await page.goto(`/staff/products/${id}`);
  const pictures = page.getByRole("region", { name: "Pictures" });
  await pictures.getByRole("button", { name: "Remove picture 1" }).waitFor();
  const buffer = picture([230, 220, 200], [80, 110, 60]);
  await pictures.getByLabel("What the next picture shows").fill("From above");
  await pictures.getByLabel("Add pictures").setInputFiles({ name: "above.png", mimeType: "image/png", buffer });
  await told(page, "The picture is added.");
  await pictures.getByRole("img", { name: "From above" }).waitFor();
  await pictures.getByRole("button", { name: "Remove picture 2" }).click();
  await dialog(page).getByRole("button", { name: "Remove" }).click();
  await pictures.getByRole("img", { name: "From above" }).waitFor({ state: "detached" });
  await pictures.getByLabel("Add pictures").setInputFiles({ name: "words.txt", mimeType: "text/plain", buffer: Buffer.from("no") });
  await pictures.getByText(/is not an AVIF, JPEG, PNG or WebP picture/).waitFor();
  await page.unrouteAll({ behavior: "wait" });
}

async function create(visit: Visit, width: number): Promise<void> {
  const { page } = visit;
  await page.goto("/staff/new");
  await page.getByLabel("Name").fill(`Ladle ${width}`);
  await page.getByLabel("Brand").fill("Werk");
  await page.getByLabel("Price").fill("12,90");
  await page.getByLabel("Category", { exact: true }).fill("Kitchen > Cooking");
  await page.getByLabel("Pieces in stock").fill("4");
  await page.getByLabel("Id").fill(`ladle-${width}`);
  await visit.check("new");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: `Ladle ${width}` }).waitFor();
  const made = unwrap(await sam.GET("/v1/products/{id}", { params: { path: { id: `ladle-${width}` } } }));
  assert.deepEqual([made.price.amount, made.category_path], [1290, ["Kitchen", "Cooking"]]);
}

async function bringIn(visit: Visit, width: number): Promise<void> {
  const { page } = visit;
  await page.goto("/staff/import");
  const good = { id: `whisk-${width}`, name: "Whisk", brand: "Werk", category_path: ["Kitchen"], price: { amount: 890, currency: "EUR" } };
  const bad = { ...good, id: `bad-${width}`, price: { amount: -1, currency: "EUR" } };
  const text = [JSON.stringify(good), "", JSON.stringify(bad), "{"].join("\n");
  const field = page.getByLabel("NDJSON or CSV");
  await field.setInputFiles({ name: "goods.ndjson", mimeType: "application/x-ndjson", buffer: Buffer.from(text) });
  await page.getByRole("button", { name: "Import 3 lines" }).click();
  await page.getByText("3 lines: 1 created, 0 updated, 0 unchanged, 2 refused.").waitFor();
  await page.getByText("Line 3", { exact: true }).waitFor();
  await page.getByText("Line 4", { exact: true }).waitFor();
  await page.getByText(/^price.amount:/).waitFor();
  await visit.check("import");

  const rows = [`id,name,brand,category_path,price,currency`, `whisk-${width},Whisk,Werk,Kitchen,8.90,EUR`, `csv-${width},"Bowl, ""deep""",Werk,Kitchen > Bowls,much,EUR`];
  await field.setInputFiles({ name: "goods.csv", mimeType: "text/csv", buffer: Buffer.from(rows.join("\r\n")) });
  await page.getByRole("button", { name: "Import 2 lines" }).click();
  await page.getByText("2 lines: 0 created, 0 updated, 1 unchanged, 1 refused.").waitFor();
  await page.getByText("“much” is not an amount in EUR.").waitFor();
}

/** Creates a promotion and sees it in the price of a basket. */
async function promote(visit: Visit, width: number): Promise<void> {
  const { page } = visit;
  await page.goto("/staff/prices");
  await page.getByLabel("Product 1, by id").fill("dinner-plate");
  await page.getByLabel("Country of the delivery").selectOption("DE");
  await page.getByLabel("Postal code").fill("89073");
  const preview = page.getByRole("region", { name: "Preview of a basket" });
  await page.getByRole("button", { name: "Show the price" }).click();
  await preview.getByText("Total").waitFor();
  await page.getByRole("button", { name: "New promotion" }).click();
  await dialog(page).getByLabel("Name").fill(`Staff pick ${width}`);
  await dialog(page).getByLabel("Code").fill(`STAFF${width}`);
  await dialog(page).getByLabel("Percent", { exact: true }).fill("25");
  await visit.check("promotion");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await dialog(page).waitFor({ state: "detached" });
  await page.getByLabel("Codes").fill(`STAFF${width}`);
  await page.getByRole("button", { name: "Show the price" }).click();
  await preview.getByText(`Staff pick ${width} (STAFF${width})`).waitFor();
  await visit.check("prices");
}

async function customers(visit: Visit, id: string, name: string): Promise<void> {
  const { page } = visit;
  await page.goto("/staff/customers");
  await page.getByRole("searchbox", { name: "Find a customer" }).fill(`${id}@example.com`);
  await page.getByRole("searchbox", { name: "Find a customer" }).press("Enter");
  await page.getByRole("link", { name: "Emma Klein" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name }).waitFor();
  await visit.check("customers");
  await page.getByRole("link", { name }).click();
  await page.getByLabel("Tier").selectOption("gold");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await told(page, "Saved.");
  const customer = unwrap(await sam.GET("/v1/customers/{id}", { params: { path: { id } } }));
  assert.equal(customer.tier, "gold");
  await visit.check("customer");
  await page.goto("/staff/questions");
  await page.getByRole("button", { name: /^Read A bread knife/ }).waitFor();
  await visit.check("questions");
}

async function maintain(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.goto("/staff/settings");
  await page.getByRole("button", { name: "Switch on" }).click();
  await dialog(page).getByRole("button", { name: "Switch on" }).click();
  await page.getByText("Maintenance mode is on. Nobody can order").waitFor();
  const read = async () => unwrap(await sam.GET("/v1/settings/private", { cache: "no-store" })).values as Record<string, unknown>;
  assert.deepEqual((await read()).maintenance, { on: true, retry_after_seconds: 300 });
  await visit.check("maintenance");
  await page.getByRole("button", { name: "Switch off" }).click();
  await page.getByRole("button", { name: "Switch on" }).waitFor();
  assert.equal((await read()).maintenance, undefined);
  await visit.check("settings");
}

describe("staff", { concurrency: 2 }, () => {
  for (const [i, [width, theme]] of ([[390, "light"], [1280, "dark"]] as const).entries()) {
    test(`staff handle orders at ${width} px`, async () => {
      const visit = await stage.visit("staff", width, theme);
      await visit.page.goto("/staff");
      await visit.page.getByLabel("Name").waitFor();
      await visit.check("signin");
      await signIn(visit, "/staff");
      await today(visit);
      // The newest and the oldest, because a shipped order leaves the list of both tests.
      await ship(visit, i === 0 ? 0 : -1);
      await refund(visit, i);
      await visit.end();
    });
  }

  for (const [width, theme, id] of [[390, "dark", "apron"], [1280, "light", "dinner-plate"]] as const) {
    test(`staff keep the catalogue at ${width} px`, async () => {
      const visit = await stage.visit("staff", width, theme);
      await signIn(visit, "/staff/products");
      await product(visit, id, width === 390 ? "27.35" : "17.45");
      await upload(visit, id);
      await create(visit, width);
      await bringIn(visit, width);
      await promote(visit, width);
      await (width === 390 ? customers(visit, "clara", "Clara Vogel") : customers(visit, "ben", "Ben Schulte"));
      await visit.end();
    });
  }

  test("a customer's token shows a refusal", async () => {
    const visit = await stage.visit("refused", 390, "light");
    const { page } = visit;
    const answer = await fetch(`${stage.system.url}/_local/tokens`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ sub: "clara" }),
    });
    const { token } = (await answer.json()) as { token: string };
    await page.addInitScript((token) => {
      localStorage.setItem("bodega.staff", JSON.stringify({ name: "Clara" }));
      localStorage.setItem("bodega.staff-token", JSON.stringify({ token, until: Date.now() + 60_000 }));
    }, token);
    await page.goto("/staff/orders");
    await page.getByText("These pages are for the shop’s staff.").waitFor();
    await page.getByRole("button", { name: "Sign in with another account" }).waitFor();
    visit.problems.length = 0;
    await visit.check("refused");
    await visit.end();
  });
});

// Alone, because nothing else can be changed meanwhile.
test("staff find an order, meet a conflict, and switch maintenance mode on and off", async () => {
  const visit = await stage.visit("settings", 1280, "light");
  await signIn(visit, "/staff");
  assert.equal(await visit.page.evaluate(() => localStorage.getItem("bodega.person")), null);
  await findAndCollide(visit);
  await maintain(visit);
  await visit.end();
});
