// Starts the local system that BODEGA_BIN names, without data, on a free port.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before } from "node:test";
import { type Client, type ClientOptions, createClient, localToken } from "@bodega/client";

/** Permits no site. Requests from Node have no origin. */
const NOWHERE = "https://localhost";

export class System {
  url = "";
  #process: ChildProcess | undefined;

  async start(origin = NOWHERE): Promise<this> {
    const program = process.env.BODEGA_BIN;
    if (!program) throw new Error("BODEGA_BIN must name the program of the local system");
    const args = ["--port", "0", "--quiet", "--parameter", `CorsOrigins=${origin}`];
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
    this.#process = child;
    let printed = "";
    for await (const text of child.stdout) {
      printed += String(text);
      this.url = /^ready: (\S+)$/m.exec(printed)?.[1] ?? "";
      if (this.url) break;
    }
    if (!this.url) throw new Error(`${program} ${args.join(" ")} has not started`);
    return this;
  }

  async stop(): Promise<void> {
    if (!this.#process || this.#process.exitCode !== null) return;
    this.#process.kill();
    await once(this.#process, "exit");
  }

  /** Returns a client of a caller. Its waits are short. */
  client(claims?: Parameters<typeof localToken>[1], options: Partial<ClientOptions> = {}): Client {
    const token = claims ? { token: localToken(this.url, claims) } : {};
    return createClient({ baseUrl: this.url, retry: { wait: 20 }, ...token, ...options });
  }

  staff(): Client {
    return this.client({ sub: "sam", groups: ["staff"] });
  }

  async control(method: string, path: string, body?: unknown): Promise<unknown> {
    const json = { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${this.url}/_local/${path}`, { method, ...(body === undefined ? {} : json) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }
}

/** The system of all tests of a file. */
export function system(): System {
  const started = new System();
  before(() => started.start());
  after(() => started.stop());
  return started;
}

/** Returns a `fetch` that counts the requests by method and path, and keeps them. */
export function watched(fetch: (request: Request) => Promise<Response> = globalThis.fetch) {
  const requests: Request[] = [];
  return {
    requests,
    fetch: (request: Request) => {
      requests.push(request.clone());
      return fetch(request);
    },
  };
}
