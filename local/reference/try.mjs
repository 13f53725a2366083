// Tries the page /docs of a running system in a headless browser, on a desktop and on a phone.
//
//   node try.mjs <url of the system> <path of Chromium> [folder for screenshots]
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [url, executablePath, folder] = process.argv.slice(2);
// The page renders only operations near the window. The desktop is high enough for all of them.
const SIZES = { desktop: { width: 1280, height: 16000 }, phone: { width: 390, height: 844 } };

const openapi = await (await fetch(`${url}/v1/openapi.yaml`)).text();
const operations = openapi.match(/^ +operationId: /gm).length;
const [placeOrder] = openapi.split("operationId: placeOrder\n")[1].split("operationId: ");
const responses = placeOrder.match(/^ {8}('\d{3}'|default):/gm).length;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const [name, viewport] of Object.entries(SIZES)) {
  const page = await browser.newPage({ viewport, isMobile: name === "phone", deviceScaleFactor: 1 });
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => /^(data|blob):/.test(request.url()) || request.url().startsWith(url) || complaints.push(request.url()));
  const shoot = async (what) => folder && (await page.screenshot({ path: `${folder}/${name}-${what}.png` }));

  await page.goto(`${url}/docs`);
  await page.getByText("token of ann in use").waitFor({ state: "attached" });
  await shoot("first");
  if (name === "desktop") {
    await page.locator(".opblock").nth(operations - 1).waitFor({ state: "attached" });
    assert.equal(await page.locator(".opblock").count(), operations);
  }

  // The search finds operations by path, id, summary and parameter. The keyboard opens one.
  const field = page.getByRole("combobox", { name: "Search all operations" });
  const options = page.getByRole("listbox", { name: "Operations" }).getByRole("option");
  await page.keyboard.press("/");
  for (const [words, first] of [["/v1/carts/{id}/quote", /quoteCart|quoteGuestCart/i], ["PLACEORDER", /placeOrder$/], ["idempotency-key transfer", /\/v1\/transfers/], ["place an order", /placeOrder$/]]) {
    await field.fill(words);
    assert.match(await options.first().innerText(), first, words);
  }
  await field.fill("no such operation");
  await page.getByText("No operation has these words.").waitFor();
  await field.fill("placeOrder");
  await field.press("Enter");
  const block = page.locator("#operations-orders-placeOrder");
  const link = block.getByRole("link", { name: "What it reads and writes" });
  assert.equal(await link.getAttribute("href"), "/table/routes/POST/v1/orders");
  assert.match(await block.locator(".opblock-summary").innerText(), /placeOrder/);
  const open = page.locator("#operations-orders-placeOrder .responses-inner");
  await open.locator("tr.response").first().waitFor();
  const texts = await open.locator("tr.response .response-col_description__inner").allInnerTexts();
  assert.equal(texts.length, responses, "responses of placeOrder");
  assert.ok(texts.every((text) => text.trim() !== ""), texts.join("|"));
  assert.match(await open.innerText(), /web-4711/, "the example is missing");
  await shoot("operation");

  // Ann signs up on the desktop. On the phone, the same request returns 409.
  await send("profile", "createCustomer", name === "desktop" ? "201" : "409", /"(id": "ann|code": "already_exists)"/);
  await page.getByLabel("Send requests as").selectOption("sam");
  await page.getByText("token of sam in use").waitFor({ state: "attached" });
  await send("customers", "findCustomers", "200", /"id": "ann"/, { email: "ann@example.com" });
  await send("catalogue", "importProducts", "200", /"status": "(created|unchanged)"/);
  await page.getByLabel("Send requests as").selectOption("");
  await send("search", "searchProducts", "200", /"items"/, { q: "tea" });

  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= viewport.width, `the ${name} page is ${width} wide`);
  // The browser reports each error response. The 409 on the phone is expected.
  const unexpected = complaints.filter((text) => !text.includes("status of 409"));
  assert.deepEqual(unexpected, []);
  await page.close();

  // Opens an operation, sends its request, and checks the response that the page shows.
  async function send(task, operation, status, shown, parameters = {}) {
    await page.getByLabel("Task").selectOption(task);
    const block = page.locator(`#operations-${task}-${operation}`);
    await block.locator(".opblock-summary-control").click();
    await block.locator("button.execute").waitFor();
    for (const [parameter, value] of Object.entries(parameters)) {
      await block.locator(`tr[data-param-name="${parameter}"] input`).fill(value);
    }
    await block.locator("button.execute").click();
    const live = block.locator(".live-responses-table");
    await live.waitFor();
    assert.match(await live.locator(".response-col_status").last().innerText(), new RegExp(`^${status}`));
    assert.match(await live.innerText(), shown);
    await live.scrollIntoViewIfNeeded();
    await shoot(operation);
  }
}
await browser.close();
console.log(`reference: the page shows ${operations} operations, and its requests succeed`);
