// Makes the pictures of README and docs: six pages of a local system with the demo.
//
//   node scripts/shots.mjs <url of a local system that runs with --demo>
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [base] = process.argv.slice(2);
if (!base) {
  console.error("usage: node scripts/shots.mjs <url of a local system that runs with --demo>");
  process.exit(2);
}
const FOLDER = join(import.meta.dirname, "../../docs/pictures");
const find = "command -v chromium || command -v chromium-browser || command -v google-chrome";
const executablePath = process.env.CHROMIUM || execFileSync("sh", ["-c", find], { encoding: "utf8" }).trim();

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const viewport = { width: 1280, height: 800 };
const context = await browser.newContext({ viewport, colorScheme: "light", reducedMotion: "reduce", locale: "en-US", baseURL: base });
const page = await context.newPage();
const session = await context.newCDPSession(page);
mkdirSync(FOLDER, { recursive: true });

/** Waits until the page has its data and its pictures, and stores what it shows. */
async function shoot(name) {
  await page.waitForFunction(() => {
    const busy = document.querySelector(".skeleton, [aria-busy=true], .wait");
    const shown = Array.from(document.images).filter((image) => image.getBoundingClientRect().top < innerHeight);
    return document.querySelector("main") && !busy && shown.every(({ complete }) => complete);
  });
  await page.mouse.move(0, 0);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 80 });
  const bytes = Buffer.from(data, "base64");
  writeFileSync(join(FOLDER, `${name}.webp`), bytes);
  console.log(`${name}.webp: ${bytes.length} bytes`);
}

/** Returns the key of the collection with the most items. */
async function largest(prefix) {
  const response = await fetch(`${base}/_local/table/partitions?prefix=${encodeURIComponent(prefix)}`);
  const { items } = await response.json();
  return items.reduce((most, one) => (one.items > most.items ? one : most)).key;
}

await page.goto("/");
await page.getByRole("heading", { name: "Best sellers" }).waitFor();
await shoot("shop");

await page.goto("/p/t-shirt");
await page.getByRole("heading", { level: 1 }).waitFor();
await shoot("product");

await page.goto("/staff");
await page.getByLabel("Name").fill("Sam");
await page.getByRole("button", { name: "Sign in" }).click();
await page.getByRole("heading", { name: "Best sellers of the week" }).waitFor();
await shoot("staff");

await page.goto("/staff/orders");
await page.getByRole("link", { name: /^\w{4}-\w{4}$/ }).first().click();
await page.getByRole("heading", { name: "Lines" }).waitFor();
await shoot("staff-order");

await page.goto(`/table/p/${encodeURIComponent(await largest("ORDER#"))}`);
await page.locator("main ol").getByText("OrderLine").first().waitFor();
await shoot("table");

await page.goto("/table/routes/PUT/v1/customers/%7Bid%7D/cart/items/%7Bproduct%7D");
await page.getByRole("button", { name: "Send the request" }).click();
await page.getByRole("heading", { name: "Before the response" }).waitFor();
await page.getByText("Waiting for the stream to catch up…").waitFor({ state: "detached", timeout: 40_000 });
await page.getByRole("heading", { name: "Before the response" }).scrollIntoViewIfNeeded();
await shoot("table-request");

await browser.close();
