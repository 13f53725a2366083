// A developer learns the table: an order, its index entries, its patterns and the path of a request.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { Stage, type Visit } from "./visit.js";

let stage: Stage;
let order: string;

before(async () => {
  stage = await Stage.open("--demo");
  await stage.system.drain();
  const response = await fetch(`${stage.system.url}/_local/table/partitions?prefix=ORDER%23`);
  assert.equal(response.status, 200, "the program has no explorer");
  order = ((await response.json()) as { items: { key: string }[] }).items[0]!.key;
});

after(() => stage?.close());

const main = (page: Page) => page.locator("main");

async function collections(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.goto("/table");
  await page.getByLabel("Partition key begins with").fill("ORDER#");
  await page.waitForURL(/prefix=ORDER%23/);
  const link = page.locator(`a[href^="/table/p/${encodeURIComponent(order)}"]`);
  await link.waitFor();
  await visit.check("partitions");
  await link.click();
  await page.getByRole("heading", { name: order, level: 1 }).waitFor();
  await page.getByRole("button", { name: "orders.lines" }).click();
  await page.getByText(/It reads \d+ of \d+/).waitFor();
  assert.equal(await page.locator("li.read").count(), await page.locator("li.read", { hasText: "OrderLine" }).count());
  await page.getByRole("button", { name: /^Order ORDER/ }).click();
  await page.waitForURL(/item=ORDER/);
  await page.getByText(/^Not in GSI/).first().waitFor();
  await visit.check("collection");
  await page.getByRole("button", { name: "DynamoDB JSON" }).click();
  await page.getByRole("group", { name: "The item as DynamoDB JSON" }).getByText('"PK"').waitFor();
}

/** Finds a partition by what people have: the number of an order, its id, or a product. */
async function guess(visit: Visit): Promise<void> {
  const { page } = visit;
  const response = await fetch(`${stage.system.url}/_local/table/partitions?prefix=NUMBER%23`);
  const number = ((await response.json()) as { items: { key: string }[] }).items[0]!.key;
  const typed = number.slice("NUMBER#".length).toLowerCase().replace("-", "");
  for (const [text, key] of [[typed, number], [order.slice("ORDER#".length), order], ["apron", "PRODUCT#apron"]] as const) {
    await page.goto("/table");
    await page.getByLabel("Partition key begins with").fill(text);
    await page.locator(`a[href^="/table/p/${encodeURIComponent(key)}"]`).waitFor();
  }
  await visit.check("guesses");
}

/** From the order to its entry in the index, and back. */
async function index(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByRole("link", { name: "Entry in GSI2" }).click();
  await page.waitForURL(/\/table\/index\/GSI2\/STATUS/);
  await page.getByRole("link", { name: "The item in the table" }).waitFor();
  await visit.check("index");
  await page.getByRole("link", { name: "The item in the table" }).click();
  await page.waitForURL(`**/table/p/${encodeURIComponent(order)}?item=ORDER`);
  await page.getByRole("link", { name: "Entry in GSI2" }).waitFor();
  await page.goto("/table/index/GSI2");
  await main(page).getByLabel("Partition key begins with").waitFor();
  await visit.check("indexes");
}

async function patterns(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.goto("/table/patterns");
  await page.getByRole("searchbox").fill("orders.with-lines");
  await visit.check("patterns");
  await page.getByRole("link", { name: "orders.with-lines", exact: true }).click();
  await page.getByRole("button", { name: "Run the request" }).click();
  await page.getByRole("heading", { name: "Answer" }).waitFor();
  await page.locator("main ol").getByText("OrderLine").first().waitFor();
  await visit.check("pattern");
  await page.goto("/table/patterns/orders.by-status?STATUS%23status=delivered&run=1");
  await page.getByText(/^4 requests$/).waitFor();
  await page.locator("main ol").getByText("Order", { exact: true }).first().waitFor();
}

/** Sends a request that writes, and sees its calls and its record. */
async function request(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.goto("/table/routes");
  await page.getByRole("searchbox").fill("likes.add");
  await visit.check("routes");
  await page.goto("/table/routes/PUT/v1/customers/%7Bid%7D/cart/items/%7Bproduct%7D");
  await page.getByRole("button", { name: "Send the request" }).click();
  await page.getByRole("heading", { name: "Before the response" }).waitFor();
  await main(page).getByText("carts.prepare").last().waitFor();
  const calls = page.locator("section.happened");
  await calls.getByRole("link", { name: "carts.prepare" }).waitFor();
  await calls.getByText("Waiting for the stream to catch up…").waitFor({ state: "detached", timeout: 40_000 });
  await visit.check("request");

  await page.goto("/table/stream?entity=Cart");
  const record = page.locator("main ol > li").first();
  await record.getByText(/^Events delivered|delivered|filtered/).first().waitFor();
  await record.getByRole("button").click();
  await page.getByRole("columnheader", { name: "Before" }).waitFor();
  await visit.check("stream");
}

async function faults(visit: Visit): Promise<void> {
  const { page } = visit;
  const slow = page.getByRole("switch", { name: "The table is slow" });
  await slow.click();
  await page.getByText(/^on, hit \d+ requests?$/).waitFor();
  const listed = (await (await fetch(`${stage.system.url}/_local/faults`)).json()) as { table: unknown[] };
  assert.equal(listed.table.length, 1);
  await slow.click();
  await page.getByText(/^on, hit/).waitFor({ state: "detached" });
  await page.goto("/table/hot");
  await page.getByRole("columnheader", { name: "Partition" }).or(page.getByText("Average of the last minute")).first().waitFor();
  await visit.check("hot");
}

describe("the explorer", () => {
  for (const [width, theme] of [
    [390, "dark"],
    [1280, "light"],
    [390, "light"],
    [1280, "dark"],
  ] as const) {
    test(`shows the table at ${width} px, ${theme}`, async () => {
      const visit = await stage.visit(`table-${theme}`, width, theme);
      await guess(visit);
      await collections(visit);
      await index(visit);
      await patterns(visit);
      await request(visit);
      await faults(visit);
      await visit.end();
    });
  }

  test("does not write without its option", async () => {
    const body = JSON.stringify({ operation: "DeleteItem", request: { Key: { PK: { S: order }, SK: { S: "ORDER" } } } });
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${stage.system.url}/_local/table/requests`, { method: "POST", headers, body });
    assert.equal(response.status, 403);
    const visit = await stage.visit("table-read-only", 1280, "light");
    await visit.page.goto(`/table/p/${encodeURIComponent(order)}?item=ORDER`);
    await visit.page.getByRole("link", { name: "Entry in GSI2" }).waitFor();
    assert.equal(await visit.page.getByRole("button", { name: "Delete the item" }).count(), 0);
    await visit.end();
  });
});
