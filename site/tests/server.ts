// Serves the built site with its policy, and passes /v1 and /_local to the API.
import { readFile } from "node:fs/promises";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const DIST = join(import.meta.dirname, "../dist");

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // The pictures are in a bucket, to which a path of the API redirects.
  "img-src 'self' http://127.0.0.1:*",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
};

export interface Site {
  url: string;
  close(): Promise<void>;
}

export async function serve(api: string): Promise<Site> {
  const { hostname, port } = new URL(api);
  const server: Server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? "/";
    if (/^\/(v1|_local)\//.test(path)) {
      const headers = { ...incoming.headers, host: `${hostname}:${port}` };
      const passed = request({ hostname, port, path, method: incoming.method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      passed.on("error", () => outgoing.destroy());
      incoming.pipe(passed);
      return;
    }
    void file(path.split("?")[0] ?? "/").then(({ type, body }) => {
      outgoing.writeHead(200, { "content-type": type, "content-security-policy": POLICY });
      outgoing.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Returns a file of the build. Every other path is a page of the site. */
async function file(path: string): Promise<{ type: string; body: Buffer }> {
  const type = TYPES[extname(path)];
  const body = type ? await readFile(join(DIST, normalize(path))).catch(() => undefined) : undefined;
  if (type && body) return { type, body };
  return { type: TYPES[".html"]!, body: await readFile(join(DIST, "index.html")) };
}
