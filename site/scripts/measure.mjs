// Measures the first visit of three pages on a slow phone: a quarter of this machine's speed, 1.6
// Mbit/s down, 750 kbit/s up, 150 ms of latency, an empty cache. Prints medians.
//
//   node scripts/measure.mjs <url of a shop with products> [visits of each page]
import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";

const [base, visits = "5"] = process.argv.slice(2);
if (!base) {
  console.error("usage: node scripts/measure.mjs <url of a shop with products> [visits of each page]");
  process.exit(2);
}
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 3, isMobile: true, hasTouch: true };
const NETWORK = { offline: false, latency: 150, downloadThroughput: 1.6e6 / 8, uploadThroughput: 750e3 / 8 };
const find = "command -v chromium || command -v chromium-browser || command -v google-chrome";
const executablePath = process.env.CHROMIUM || execFileSync("sh", ["-c", find], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** Runs in the page before its scripts. */
function observe() {
  const seen = { lcp: 0, element: "", cls: 0, fcp: 0, tasks: [], last: 0 };
  window.seen = seen;
  const on = (type, take) =>
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => ((seen.last = performance.now()), take(entry)))).observe({ type, buffered: true });
  on("largest-contentful-paint", ({ startTime, element }) => {
    seen.lcp = startTime;
    seen.element = element ? element.tagName.toLowerCase() : "";
  });
  on("layout-shift", ({ value, hadRecentInput }) => (seen.cls += hadRecentInput ? 0 : value));
  on("paint", ({ name, startTime }) => name === "first-contentful-paint" && (seen.fcp = startTime));
  on("longtask", ({ startTime, duration }) => seen.tasks.push([startTime, duration]));
}

async function visit(path) {
  const context = await browser.newContext(PHONE);
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  const sizes = { requests: 0, bytes: 0, script: 0 };
  const scripts = new Set();
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", NETWORK);
  await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  session.on("Network.responseReceived", ({ requestId, type }) => {
    sizes.requests += 1;
    if (type === "Script") scripts.add(requestId);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    sizes.bytes += encodedDataLength;
    if (scripts.has(requestId)) sizes.script += encodedDataLength;
  });
  await page.addInitScript(observe);
  await page.goto(new URL(path, base).href);
  await page.waitForLoadState("networkidle");
  // The page is finished when it has painted and moved nothing for two seconds.
  await page.waitForFunction(() => performance.now() - window.seen.last > 2000, undefined, { timeout: 120_000 });
  const { lcp, element, cls, fcp, tasks } = await page.evaluate(() => window.seen);
  await context.close();
  const tbt = tasks.filter(([start]) => start > fcp).reduce((sum, [, duration]) => sum + duration - 50, 0);
  return { element, fcp, lcp, tbt, cls, ...sizes };
}

/** Returns the first links to a category and to a product on the first page. */
async function paths() {
  const page = await browser.newPage();
  await page.goto(base);
  const first = async (start) => {
    const link = page.locator(`a[href^="${start}"]`).first();
    await link.waitFor({ state: "attached" });
    return link.getAttribute("href");
  };
  const found = { home: "/", category: await first("/c/"), product: await first("/p/") };
  await page.close();
  return found;
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const row = (cells) => console.log(`| ${cells.join(" | ")} |`);

row(["page", "FCP", "LCP", "LCP's element", "TBT", "CLS", "requests", "KB", "KB of JavaScript"]);
row(["---", "---:", "---:", "---", "---:", "---:", "---:", "---:", "---:"]);
for (const [name, path] of Object.entries(await paths())) {
  const all = [];
  for (let at = 0; at < Number(visits); at += 1) all.push(await visit(path));
  const of = (key) => median(all.map((one) => one[key]));
  const seconds = (key) => `${(of(key) / 1000).toFixed(1)} s`;
  const kilobytes = (key) => String(Math.round(of(key) / 1000));
  row([name, seconds("fcp"), seconds("lcp"), all[0].element, `${Math.round(of("tbt"))} ms`, of("cls").toFixed(3), of("requests"), kilobytes("bytes"), kilobytes("script")]);
}
await browser.close();
