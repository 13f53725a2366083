// Writes test/generated: each example of openapi.yaml as a constant of its type, each list as a
// path of `pages`, and the examples of README.md.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { parse } from "yaml";

const METHODS = ["get", "put", "post", "patch", "delete"];
const folder = new URL("../test/generated/", import.meta.url);
const document = parse(await readFile(new URL("../../../openapi.yaml", import.meta.url), "utf8"));
await mkdir(folder, { recursive: true });

function target(node) {
  while (node.$ref) node = node.$ref.slice(2).split("/").reduce((parent, name) => parent[name], document);
  return node;
}

const lines = [];
const constant = (type, value) => lines.push(`(): ${type} => (${JSON.stringify(value)});`);
for (const [name, { examples = [] }] of Object.entries(document.components.schemas)) {
  for (const example of examples) constant(`components["schemas"]["${name}"]`, example);
}
const counts = { bodies: 0, lists: 0 };
for (const [path, item] of Object.entries(document.paths)) {
  for (const method of METHODS.filter((method) => item[method])) {
    const { requestBody, parameters = [] } = item[method];
    for (const [media, { schema }] of Object.entries(requestBody?.content ?? {})) {
      if (!media.endsWith("json")) continue;
      const { examples } = target(schema);
      if (!examples?.length) throw new Error(`${method} ${path} has no example`);
      for (const example of examples) {
        constant(`NonNullable<paths["${path}"]["${method}"]["requestBody"]>["content"]["${media}"]`, example);
        counts.bodies++;
      }
    }
    const names = parameters.map((parameter) => target(parameter).name);
    if (names.includes("limit") && names.includes("cursor")) {
      constant("ListPath", path);
      counts.lists++;
    }
  }
}
for (const [name, { value }] of Object.entries(document.components.examples)) {
  if (value?.code) constant(`Problem<"${value.code}">`, value);
}
if (!counts.bodies || !counts.lists) throw new Error("openapi.yaml has no bodies or no lists");
const codes = document.components.schemas.Problem.properties.code.enum;
await writeFile(
  new URL("bodies.ts", folder),
  `import type { Code, components, ListPath, paths, Problem } from "@bodega/client";
${lines.join("\n")}
export const CODES: Record<Code, true> = ${JSON.stringify(Object.fromEntries(codes.map((code) => [code, true])))};
`,
);
console.log(`${counts.bodies} bodies, ${counts.lists} lists, ${codes.length} codes`);

// The blocks of the README are one program. Blocks for browsers are only compiled.
const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
const imports = new Set();
const bodies = { "": "", " browser": "" };
for (const [, kind, code] of readme.matchAll(/^```ts( browser)?\n(.*?)^```$/gms)) {
  bodies[kind ?? ""] += code.replace(/^import \{(.*)\} from "@bodega\/client";\n/gm, (_, names) => {
    for (const name of names.split(",")) imports.add(name.trim());
    return "";
  });
}
await writeFile(
  new URL("readme.ts", folder),
  `import { ${[...imports].join(", ")} } from "@bodega/client";
export async function readme(url: string, console: Pick<Console, "log" | "error">) {
${bodies[""]}}
export async function browser() {
${bodies[" browser"]}}
`,
);
