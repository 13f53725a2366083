import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Returns the bytes of a page's script after esbuild and gzip. */
async function bytes(contents: string): Promise<{ text: string; gzip: number }> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: process.cwd() },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    write: false,
  });
  const [file] = outputFiles;
  assert.ok(file);
  return { text: file.text, gzip: gzipSync(file.contents, { level: 9 }).length };
}

test("the package has only the built files, the README and the licences", () => {
  const printed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { encoding: "utf8" });
  const [{ files }] = JSON.parse(printed) as [{ files: { path: string }[] }];
  const modules = ["auth", "index", "pages", "problems", "retry", "schema", "versions"];
  const built = modules.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`]);
  assert.deepEqual(
    files.map((file) => file.path).sort(),
    ["LICENSE-APACHE", "LICENSE-MIT", "README.md", ...built, "package.json"].sort(),
  );
});

test("a page that reads a product is small and has no code of other helpers", async (context) => {
  const reads = `import { createClient } from "@bodega/client";
    const shop = createClient({ baseUrl: "https://shop.example" });
    shop.GET("/v1/products/{id}", { params: { path: { id: "tea" } } }).then(({ data }) => console.log(data));`;
  const small = await bytes(reads);
  const all = await bytes(`import * as all from "@bodega/client"; console.log(all);`);
  context.diagnostic(`a page with one GET: ${small.text.length} bytes, ${small.gzip} after gzip`);
  context.diagnostic(`with all helpers: ${all.text.length} bytes, ${all.gzip} after gzip`);
  assert.ok(small.gzip < 6_000 && all.gzip < 8_000);
  for (const other of ["oauth2", "next_cursor", "If-None-Match"]) {
    assert.ok(all.text.includes(other) && !small.text.includes(other), other);
  }
});

test("the package needs only openapi-fetch at run time", () => {
  const installed = execFileSync("npm", ["ls", "--omit=dev", "--parseable", "--all"], { encoding: "utf8" });
  const names = installed.trim().split("\n").slice(1).map((path) => path.split("/node_modules/").at(-1));
  assert.deepEqual(names.sort(), ["openapi-fetch", "openapi-typescript-helpers"]);
  assert.ok(readdirSync("dist").length > 0);
});
