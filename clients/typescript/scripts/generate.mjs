// Writes src/schema.ts from openapi.yaml: the types of all requests and responses, the routes that
// take an Idempotency-Key, and the routes that need a token. Also copies the licences, because a
// package contains only files of its folder.
import { copyFile, readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";
import { parse } from "yaml";

const document = parse(await readFile(new URL("../../../openapi.yaml", import.meta.url), "utf8"));
const { parameters } = document.components;
// The client creates missing keys, so no request has to name one.
parameters.IdempotencyKey.required = false;

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([method]) => method !== "parameters")
    .map(([method, operation]) => ({ route: `${method.toUpperCase()} ${path}`, operation })),
);
const keys = ["IdempotencyKey", "OptionalIdempotencyKey"].map((name) => `#/components/parameters/${name}`);
const takesKey = ({ operation }) => operation.parameters?.some((parameter) => keys.includes(parameter.$ref));
const isPublic = ({ operation }) => operation.security?.length === 0;

await writeFile(
  new URL("../src/schema.ts", import.meta.url),
  `// Generated from openapi.yaml by scripts/generate.mjs.
${astToString(await openapiTS(document))}
/** The routes that take an Idempotency-Key. */
${set("KEYED", takesKey)}
/** The routes that read no token. */
${set("PUBLIC", isPublic)}`,
);
for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
  await copyFile(new URL(`../../../${licence}`, import.meta.url), new URL(`../${licence}`, import.meta.url));
}

function set(name, belongs) {
  const routes = operations.filter(belongs).map(({ route }) => route);
  if (routes.length === 0) throw new Error(`openapi.yaml has no route for ${name}`);
  return `export const ${name}: ReadonlySet<string> = /* @__PURE__ */ new Set(${JSON.stringify(routes, null, 2)});
`;
}
