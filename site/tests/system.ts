// Starts the local system that BODEGA_BIN names, with the built site, without data, on a free port.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Client, createClient, localToken } from "@bodega/client";

const DIST = join(import.meta.dirname, "../../dist");

export interface System {
  url: string;
  client(claims: Parameters<typeof localToken>[1]): Client;
  drain(): Promise<void>;
  stop(): Promise<void>;
}

export async function start(...options: string[]): Promise<System> {
  const program = process.env.BODEGA_BIN;
  if (!program) throw new Error("BODEGA_BIN must name the program of the local system");
  const child = spawn(program, ["--port", "0", "--quiet", "--site", DIST, ...options], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await ready(child);
  return {
    url,
    client: (claims) => createClient({ baseUrl: url, token: localToken(url, claims), retry: { wait: 20 } }),
    drain: async () => {
      const response = await fetch(`${url}/_local/drain`, { method: "POST" });
      if (!response.ok) throw new Error(await response.text());
    },
    stop: async () => {
      if (child.exitCode !== null) return;
      child.kill();
      await once(child, "exit");
    },
  };
}

async function ready(child: ChildProcess): Promise<string> {
  let printed = "";
  for await (const text of child.stdout!) {
    printed += String(text);
    const url = /^ready: (\S+)$/m.exec(printed)?.[1];
    if (url) return url;
  }
  throw new Error("the local system has not started");
}
