// Prints the sizes of the build: each file minified and compressed, the first load of the shop, and
// the whole.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url).pathname;
const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(dist.length))
  .sort();
const sizes = new Map(files.map((name) => [name, gzipSync(readFileSync(join(dist, name)), { level: 9 }).length]));

/** Returns the scripts that a script imports at its beginning, with what they import. */
function imports(name, seen = new Set()) {
  if (seen.has(name)) return seen;
  seen.add(name);
  const text = readFileSync(join(dist, name), "utf8");
  for (const [, other] of text.matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) imports(`assets/${other}`, seen);
  return seen;
}

const first = new Set(["theme.js"]);
for (const name of files.filter((name) => /^assets\/(index|Shop)-.*\.js$/.test(name))) imports(name, first);

for (const [name, size] of sizes) console.log(`${String(size).padStart(7)} ${first.has(name) ? "*" : " "} ${name}`);
const sum = (names) => [...names].reduce((total, name) => total + sizes.get(name), 0);
console.log(`${sum(first)} bytes of JavaScript for the first page of the shop (*)`);
console.log(`${sum(files)} bytes in all`);
