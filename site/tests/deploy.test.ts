// The script `deploy` with an `aws` and an `npm` of this test: a folder is the bucket, and each call
// is a line of a log. Then the parts of docs/cloudfront-and-waf.yaml that the site needs.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";

const SITE = join(import.meta.dirname, "../..");
const EDGE = readFileSync(join(SITE, "../docs/cloudfront-and-waf.yaml"), "utf8");

/** Does what the CLI would do with a bucket, and refuses options that this test does not know. */
const AWS = `#!${process.execPath}
const { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } = require("node:fs");
const { dirname, join } = require("node:path");
const words = process.argv.slice(2);
appendFileSync("calls", "aws " + words.join(" ") + "\\n");
const calls = readFileSync("calls", "utf8").split("\\n").filter((line) => line.startsWith("aws s3 "));
if (words[0] === "s3" && calls.length === Number(process.env.FAILING_UPLOAD)) process.exit(1);
const value = (name) => words[words.indexOf(name) + 1];
if (words[0] === "cloudformation") {
  const stack = JSON.parse(readFileSync("stacks.json", "utf8"))[value("--stack-name")];
  const here = words.includes("--region") ? value("--region") : "eu-central-1";
  if (!stack || stack.region !== here) process.exit(254);
  console.log(JSON.stringify({ Outputs: Object.entries(stack.outputs).map(([OutputKey, OutputValue]) => ({ OutputKey, OutputValue })) }));
} else if (words[0] === "s3") {
  const [command, from, to] = words.slice(1);
  const known = ["--cache-control", "--content-type", "--exclude", "--region", "--no-progress"];
  if (words.some((word) => word.startsWith("--") && !known.includes(word)) || value("--region") !== "us-east-1") process.exit(252);
  const excluded = words.filter((_, at) => words[at - 1] === "--exclude").map((text) => new RegExp("^" + text.replaceAll(".", "\\\\.").replaceAll("*", ".*") + "$"));
  const key = to.replace("s3://the-site/", "").replace(/^s3:.*/, "");
  const names = command === "cp" ? [""] : readdirSync(from, { recursive: true, withFileTypes: true }).filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name).slice(from.length + 1));
  for (const name of names.filter((name) => !excluded.some((pattern) => pattern.test(name)))) {
    const target = join("bucket", key, name);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(from, name), target);
    appendFileSync("headers", target.slice(7) + " " + value("--cache-control") + "\\n");
  }
} else if (words[0] !== "cloudfront") process.exit(252);
`;
const NPM = `#!${process.execPath}
const { appendFileSync, mkdirSync, writeFileSync } = require("node:fs");
const words = process.argv.slice(2);
appendFileSync("calls", "npm " + words.join(" ") + "\\n");
if (words.join(" ") === "run --prefix . build") {
  mkdirSync("dist/assets", { recursive: true });
  for (const name of ["assets/new.js", "theme.js"]) writeFileSync("dist/" + name, "");
  writeFileSync("dist/config.json", "{}");
  writeFileSync("dist/index.html", '<script src="/assets/new.js">');
}
`;
const STACKS = {
  shop: { region: "eu-central-1", outputs: { LoginUrl: "https://shop.auth.test", UserPoolClientId: "client" } },
  edge: {
    region: "us-east-1",
    outputs: { SiteBucket: "the-site", DistributionId: "E1", SiteUrl: "https://shop.test", ShopName: 'Ann\'s "Tea"' },
  },
};

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bodega-deploy-"));
  for (const name of ["bin", "scripts", "bucket/assets"]) mkdirSync(join(folder, name), { recursive: true });
  for (const name of ["deploy", "scripts/stacks.mjs"]) copyFileSync(join(SITE, name), join(folder, name));
  writeFileSync(join(folder, "bin/aws"), AWS, { mode: 0o755 });
  writeFileSync(join(folder, "bin/npm"), NPM, { mode: 0o755 });
  writeFileSync(join(folder, "bucket/index.html"), '<script src="/assets/old.js">');
  writeFileSync(join(folder, "bucket/assets/old.js"), "");
});

afterEach(() => rmSync(folder, { recursive: true }));

function deploy(stacks: object, env: Record<string, string> = {}) {
  writeFileSync(join(folder, "stacks.json"), JSON.stringify(stacks));
  const path = `${join(folder, "bin")}:${process.env.PATH ?? ""}`;
  const { status, stdout, stderr } = spawnSync(join(folder, "deploy"), ["shop", "edge"], {
    encoding: "utf8",
    env: { ...process.env, PATH: path, ...env },
  });
  return { status, stdout, stderr };
}

const lines = (name: string) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n");
const page = () => readFileSync(join(folder, "bucket/index.html"), "utf8");

describe("site/deploy", () => {
  test("uploads a build, the page last, and then invalidates", () => {
    const { status, stdout, stderr } = deploy(STACKS);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /https:\/\/shop\.test\n$/);
    assert.deepEqual(lines("headers"), [
      "assets/new.js public, max-age=31536000, immutable",
      "theme.js no-cache",
      "config.json no-cache",
      "index.html no-cache",
    ]);
    assert.equal(page(), '<script src="/assets/new.js">');
    assert.deepEqual(readdirSync(join(folder, "bucket/assets")), ["new.js", "old.js"]);
    assert.deepEqual(JSON.parse(readFileSync(join(folder, "bucket/config.json"), "utf8")), {
      name: 'Ann\'s "Tea"',
      loginUrl: "https://shop.auth.test",
      clientId: "client",
    });
    assert.match(lines("calls").at(-1)!, /^aws cloudfront create-invalidation --distribution-id E1 --paths \/\* /);
    const calls = lines("calls").map((call) => call.split(" ", 2).join(" "));
    assert.ok(calls.lastIndexOf("npm run") < calls.indexOf("aws s3"), "the build is before the upload");
  });

  test("stops at a failed upload, and the former page stays", () => {
    for (const failing of [1, 2, 3, 4]) {
      rmSync(join(folder, "calls"), { force: true });
      assert.equal(deploy(STACKS, { FAILING_UPLOAD: String(failing) }).status, 1);
      assert.equal(page(), '<script src="/assets/old.js">');
      assert.doesNotMatch(lines("calls").join("\n"), /create-invalidation/);
    }
  });

  test("uploads nothing without a login or a bucket", () => {
    const { LoginUrl, ...withoutLogin } = STACKS.shop.outputs;
    const { SiteBucket, ...withoutBucket } = STACKS.edge.outputs;
    for (const [stacks, missing] of [
      [{ ...STACKS, shop: { ...STACKS.shop, outputs: withoutLogin } }, "LoginUrl"],
      [{ ...STACKS, edge: { ...STACKS.edge, outputs: withoutBucket } }, "SiteBucket"],
    ] as const) {
      const { status, stderr } = deploy(stacks);
      assert.equal(status, 1);
      assert.match(stderr, new RegExp(missing));
      assert.doesNotMatch(lines("calls").join("\n"), /aws s3|npm/);
    }
    assert.notEqual(deploy({}).status, 0);
    assert.ok(!existsSync(join(folder, "headers")), LoginUrl + SiteBucket);
  });

  test("gives the address of the form for cards to the pages", () => {
    const outputs = { ...STACKS.edge.outputs, CardForm: "/card.js" };
    assert.equal(deploy({ ...STACKS, edge: { ...STACKS.edge, outputs } }).status, 0);
    const config = JSON.parse(readFileSync(join(folder, "bucket/config.json"), "utf8")) as { cardForm?: string };
    assert.equal(config.cardForm, "/card.js");
  });
});

describe("docs/cloudfront-and-waf.yaml", () => {
  const code = /FunctionCode: \|\n((?: {8}.*\n|\n)+)/.exec(EDGE)![1]!;
  const handler = new Function(`${code}; return handler;`)() as (event: object) => { uri: string };
  const target = (uri: string) => handler({ request: { uri, headers: {}, querystring: {} } }).uri;

  test("every path of a page is answered with index.html, whatever its id", () => {
    const pages = ["/", "/c/tea", "/p/tea", "/p/tea.png", "/p/v1.2.json", "/orders/a.js", "/staff/orders/x.html", "/account", "/p/", "/signin"];
    for (const path of [...pages, "/p/%E8%8C%B6.svg", "/C.exe", "/.env", "/c/a~b_2Ec.css"]) assert.equal(target(path), "/index.html", path);
  });

  test("every file of the build is answered as itself", () => {
    const names = readdirSync(join(SITE, "public")).concat("index.html", "robots.txt", ".well-known/payment.txt");
    for (const name of names) assert.equal(target(`/${name}`), `/${name}`);
    // A behaviour of its own serves assets, so the function does not see them.
    assert.match(EDGE, /- PathPattern: \/assets\/\*\n\s+TargetOriginId: site\n(?:(?!FunctionAssociations|PathPattern).*\n)+/);
    assert.ok(code.length < 10_240, "the quota of a function");
  });

  test("the policy is that of the README", () => {
    const policy = /ContentSecurityPolicy: !Sub "(.*)"/.exec(EDGE)![1]!;
    const names: [string, string][] = [
      ["https://${PictureHost}", "<bucket of pictures>"],
      ["${LoginUrl}", "<LoginUrl>"],
      ["${CardHosts}", "<payment provider>"],
    ];
    const expected = names.reduce((text, [from, to]) => text.replaceAll(from, to), policy);
    const written = /^default-src[^`]*/m.exec(readFileSync(join(SITE, "README.md"), "utf8"))![0];
    assert.equal(written.replace(/\s+/g, " ").trim(), expected);
  });
});
