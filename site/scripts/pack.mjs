// Packs the build for the local system: one compressed JSON object of paths and contents. With
// `--check` compares the build with the packed file instead.
import { readdirSync, readFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url).pathname;
const packed = new URL("../../local/site/site.json.gz", import.meta.url).pathname;
const names = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(dist.length))
  .sort();
const text = JSON.stringify(Object.fromEntries(names.map((name) => [name, readFileSync(join(dist, name), "utf8")])));

if (process.argv.includes("--check")) {
  const known = JSON.parse(gunzipSync(readFileSync(packed)).toString());
  const built = JSON.parse(text);
  const different = [...new Set([...Object.keys(known), ...names])].filter((name) => known[name] !== built[name]);
  if (different.length > 0) {
    console.error(`local/site is out of date, run \`.ci/site pack\`: ${different.join(", ")}`);
    process.exit(1);
  }
  console.log(`local/site has the ${names.length} files of the build`);
} else {
  mkdirSync(new URL("../../local/site", import.meta.url), { recursive: true });
  const bytes = gzipSync(text, { level: 9 });
  writeFileSync(packed, bytes);
  console.log(`${names.length} files, ${bytes.length} bytes`);
}
