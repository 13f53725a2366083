// A page uses the built modules as they are, in headless Chromium. It is on another origin than the
// API, as the page of a shop is.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { localToken, unwrap } from "@bodega/client";
import { chromium } from "playwright-core";
import { Cognito } from "./cognito.js";
import { System } from "./system.js";

const executablePath = process.env.CHROMIUM || ["chromium", "chromium-browser", "google-chrome"].map(which).find(Boolean);
const missing = "there is no Chromium. With BROWSER_REQUIRED=1 the test fails instead.";
const skip = !executablePath && !process.env.BROWSER_REQUIRED ? missing : false;

const imports = { "@bodega/client": "/dist/index.js", "openapi-fetch": "/node_modules/openapi-fetch/dist/index.mjs" };
const HTML = `<!doctype html><title>Shop</title><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports })}</script>`;

function which(program: string): string {
  try {
    return execFileSync("which", [program], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "";
  }
}

test("a page signs in by PKCE, orders through a fault and reads its orders", { skip }, async (context) => {
  const site = createServer(async (request, response) => {
    const path = new URL(request.url ?? "", "http://x").pathname;
    if (!/^\/(dist|node_modules\/openapi-fetch\/dist)\/\w+\.m?js$/.test(path)) {
      return response.writeHead(200, { "content-type": "text/html" }).end(HTML);
    }
    return response.writeHead(200, { "content-type": "text/javascript" }).end(await readFile(`.${path}`));
  });
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  const origin = `http://localhost:${(site.address() as AddressInfo).port}`;
  const [system, cognito] = [new System(), new Cognito()];
  const browser = await chromium.launch({ ...(executablePath ? { executablePath } : {}), args: ["--no-sandbox"] });
  context.after(async () => {
    await Promise.all([browser.close(), system.stop()]);
    cognito.stop();
    site.close();
    site.closeAllConnections();
  });
  await Promise.all([system.start(origin), cognito.start()]);
  cognito.issue = localToken(system.url, { sub: "bea", email: "bea@example.com" });
  const price = { amount: 349, currency: "USD" };
  const body = { id: "tea", name: "Tea", brand: "B", category_path: ["FOOD"], price, stock: 9 };
  unwrap(await system.staff().POST("/v1/products", { body }));

  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  const login = { loginUrl: cognito.url, clientId: cognito.clientId, redirectUri: `${origin}/signed-in` };
  const settings = { url: system.url, login };

  await page.goto(`${origin}/cart`);
  const visitor = await page.evaluate(async ({ url, login }) => {
    const { createAuth, createClient } = await import("@bodega/client");
    const auth = createAuth(login);
    const shop = createClient({ baseUrl: url, token: auth.token });
    const tea = await shop.GET("/v1/products/{id}", { params: { path: { id: "tea" } } });
    const seen = [tea.data?.name, await auth.token()];
    const next = await auth.begin(location.pathname);
    setTimeout(() => location.assign(next));
    return seen;
  }, settings);
  assert.deepEqual(visitor, ["Tea", undefined]);

  await page.waitForURL(/signed-in\?code=/);
  await system.control("POST", "faults", { target: "function:Orders", kind: "throttle", count: 1 });
  const customer = await page.evaluate(async ({ url, login }) => {
    const { createAuth, createClient, isProblem, pages, unwrap, versioned } = await import("@bodega/client");
    const auth = createAuth(login);
    const back = await auth.finish(location.href);
    const shop = createClient({ baseUrl: url, token: auth.token, retry: { wait: 20 } });
    const path = { id: "me" };
    const body = { email: "bea@example.com", username: "bea", name: "Bea" };
    const profile = unwrap(await shop.POST("/v1/customers", { body }));
    const mine = versioned((init) => shop.GET("/v1/customers/{id}", { params: { path }, ...init }));
    const names = [(await mine.read()).name, (await mine.read()).name];
    const change = await mine.change((header) =>
      shop.PATCH("/v1/customers/{id}", { params: { path, header }, body: { name: "Beatrice" } }),
    );
    const order = (quantity: number) =>
      shop.POST("/v1/orders", { body: { customer_id: "me", lines: [{ product_id: "tea", quantity }] } });
    const [placed, refused] = [unwrap(await order(2)), await order(100)];
    const listed: string[] = [];
    for await (const item of pages(shop, "/v1/customers/{id}/orders", { params: { path }, max: 10 })) listed.push(item.id);
    const left = await auth.signOut();
    setTimeout(() => location.assign(left));
    return {
      back,
      isVerified: profile.email_verified,
      names,
      changed: !change.conflict && change.data.name,
      ordered: listed.length === 1 && listed[0] === placed.id,
      isShort: isProblem(refused.error, "insufficient_stock") && refused.error.errors?.length === 1,
      rest: sessionStorage.length,
    };
  }, settings);
  assert.deepEqual(customer, {
    back: { returnTo: "/cart" },
    isVerified: true,
    names: ["Bea", "Bea"],
    changed: "Beatrice",
    ordered: true,
    isShort: true,
    rest: 0,
  });
  await page.waitForURL(`${origin}/signed-in`);
  assert.equal(cognito.refreshTokens.size, 0);
  // The browser reports each error response: the throttled one and the refused one.
  assert.deepEqual(complaints.map((text) => /status of (\d+)/.exec(text)?.[1] ?? text), ["503", "409"]);
});
