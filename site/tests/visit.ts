// A local system with the built site, and visits in Chromium to its pages.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { start, type System } from "./system.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SHOTS = process.env.SHOTS;

type Theme = "light" | "dark";

export class Stage {
  private constructor(
    readonly system: System,
    readonly browser: Browser,
  ) {}

  /** Starts the system with these further options, and a browser. */
  static async open(...options: string[]): Promise<Stage> {
    const names = ["chromium", "chromium-browser", "google-chrome"];
    const executablePath = process.env.CHROMIUM || names.map(which).find(Boolean);
    const [system, browser] = await Promise.all([
      start(...options),
      chromium.launch({ ...(executablePath ? { executablePath } : {}), args: ["--no-sandbox"] }),
    ]);
    return new Stage(system, browser);
  }

  visit(name: string, width: number, theme: Theme): Promise<Visit> {
    return Visit.begin(this, name, width, theme);
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.system.stop();
  }
}

function which(name: string): string | undefined {
  try {
    return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

/** A visit, which fails at an error of the console or of the policy. */
export class Visit {
  readonly problems: string[] = [];
  requests: string[] = [];

  private constructor(
    readonly page: Page,
    readonly context: BrowserContext,
    readonly name: string,
  ) {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.problems.push(`${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => this.problems.push(String(error)));
    page.on("request", (request) => {
      const { host, pathname } = new URL(request.url());
      if (!["127.0.0.1"].includes(host.split(":")[0]!)) this.problems.push(`external request: ${request.url()}`);
      if (pathname.startsWith("/v1/") && request.resourceType() === "fetch") this.requests.push(pathname);
    });
  }

  static async begin({ browser, system }: Stage, name: string, width: number, theme: Theme): Promise<Visit> {
    const viewport = { width, height: width < 600 ? 844 : 860 };
    const context = await browser.newContext({ viewport, colorScheme: theme, reducedMotion: "reduce", locale: "en-US", baseURL: system.url });
    context.setDefaultTimeout(20_000);
    await context.addInitScript(() => {
      const record = window as unknown as { shifts: number };
      record.shifts = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean })[]) {
          if (!entry.hadRecentInput) record.shifts += entry.value;
        }
      }).observe({ type: "layout-shift", buffered: true });
    });
    return new Visit(await context.newPage(), context, `${name}-${width}`);
  }

  /** Checks the page as it is now. */
  async check(name: string): Promise<void> {
    const { page } = this;
    await this.settle();
    if (SHOTS) {
      mkdirSync(SHOTS, { recursive: true });
      await page.screenshot({ path: `${SHOTS}/${this.name}-${name}.png`, fullPage: true });
    }
    await page.evaluate(AXE);
    const found = await page.evaluate(async () => {
      const { axe } = window as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } };
      interface Violation {
        id: string;
        impact: string;
        nodes: { html: string; failureSummary: string }[];
      }
      const { violations } = await axe.run({ resultTypes: ["violations"] });
      return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("\n")}`);
    });
    assert.deepEqual(found, [], `${this.name} ${name}: accessibility`);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${this.name} ${name}: the page is ${overflow} px too wide`);
    assert.deepEqual(this.problems, [], `${this.name} ${name}: console`);
  }

  /** Waits until the page has its data and its pictures. */
  async settle(): Promise<void> {
    await this.page.waitForFunction(() => {
      const busy = document.querySelector(".skeleton, [aria-busy=true], .wait");
      const images = Array.from(document.images).filter(({ loading }) => loading === "eager");
      return document.querySelector("main") && !busy && images.every(({ complete }) => complete);
    });
  }

  async end(): Promise<void> {
    await this.context.close();
  }

  /** Returns the sum of the page's layout shifts. */
  shifts(): Promise<number> {
    return this.page.evaluate(() => (window as unknown as { shifts: number }).shifts);
  }
}
