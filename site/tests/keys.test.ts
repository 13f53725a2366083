// The decoder of keys, and the requests that follow from the key texts of access patterns.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { compare, decode, encode, itemSize, plain, shown } from "../src/table/keys.js";
import { build, covers, match, parseKeyText, parseTemplate, type Target } from "../src/table/templates.js";

const table: Target = { table: "bodega", index: undefined, strong: false, shards: 1 };
const gsi2 = { name: "GSI2", partition_key: "GSI2PK", sort_key: "GSI2SK" };

function one(operation: string, key: string, values: Record<string, string>, target = table): Record<string, unknown> {
  const made = build(operation, parseKeyText(key), values, target);
  assert.ok(Array.isArray(made), `missing ${JSON.stringify(made)}`);
  assert.equal(made.length, 1);
  return made[0]!.request;
}

describe("keys", () => {
  test("a part is escaped up to %, and decoded again", () => {
    assert.equal(encode("Books & paper #1 100%"), "Books%20&%20paper%20%231%20100%25");
    for (const text of ["", "Ångström", "a#b$c%d", "tab\t", "50 %"]) assert.equal(decode(encode(text)), text);
    for (const text of ["a b", "a%2", "a%2f", "a%26", "a$"]) assert.equal(decode(text), undefined);
  });

  test("a padded number is shown without its zeros", () => {
    assert.equal(shown("00000000000000000000"), "0");
    assert.equal(shown("00000000000000000012"), "12");
    assert.equal(shown("Books%20&%20paper"), "Books & paper");
  });

  test("keys sort by their bytes", () => {
    const keys = ["ITEM#1", "ORDER", "STATUS#2", "A$", "A#", "A", "é", "z"];
    assert.deepEqual(keys.sort(compare), ["A", "A#", "A$", "ITEM#1", "ORDER", "STATUS#2", "z", "é"]);
  });

  test("an item has DynamoDB's size, and plain values", () => {
    assert.equal(itemSize({ PK: { S: "A" }, n: { N: "123" } }), 2 + 1 + 1 + 3);
    assert.equal(itemSize({ m: { M: { a: { BOOL: true } } } }), 1 + 3 + 1 + 1 + 1);
    assert.deepEqual(plain({ M: { a: { L: [{ N: "1" }, { NULL: true }] } } }), { a: [1, null] });
  });
});

describe("key texts", () => {
  test("a key has one form", () => {
    const template = parseTemplate("SECTION#<name>#<version>");
    assert.deepEqual(match(template, "SECTION#intro#00000000000000000001"), { name: "intro", version: "00000000000000000001" });
    assert.equal(match(template, "SECTION#intro"), undefined);
    assert.equal(match(template, "VERSION#a#b"), undefined);
    assert.deepEqual(match(parseTemplate("CATEGORY#<path>"), "CATEGORY#a#b"), { path: "a#b" });
  });

  test("under is the range up to $", () => {
    const request = one("Query", "PK = ORDER#<id>, SK under ITEM#", { "ORDER#id": "a b" });
    assert.equal(request.KeyConditionExpression, "PK = :pk AND SK BETWEEN :from AND :to");
    assert.deepEqual(request.ExpressionAttributeValues, { ":pk": { S: "ORDER#a%20b" }, ":from": { S: "ITEM#" }, ":to": { S: "ITEM$" } });
    assert.ok(covers({ operation: "Query", request }, "ITEM#1"));
    assert.ok(!covers({ operation: "Query", request }, "ORDER"));
  });

  test("a sharded list has a Query for each shard", () => {
    const text = parseKeyText("GSI2PK = STATUS#<status>#<shard>, GSI2SK between <from> and <to>$, backward");
    const made = build("ShardedQuery", text, { "STATUS#status": "paid" }, { ...table, index: gsi2, shards: 4 });
    assert.ok(Array.isArray(made));
    assert.equal(made.length, 4);
    assert.deepEqual(made[3]!.request, {
      TableName: "bodega",
      IndexName: "GSI2",
      KeyConditionExpression: "GSI2PK = :pk",
      ExpressionAttributeValues: { ":pk": { S: "STATUS#paid#00000000000000000003" } },
      ScanIndexForward: false,
    });
  });

  test("a batch has the keys of each line, and of each clause", () => {
    const key = "PK = CUSTOMER#<id>, SK = PROFILE; PK = PRODUCT#<id>, SK = PRODUCT, for each line; PK = STOCK#<id>#<location>#<shard>, SK = STOCK, for each line";
    const request = one("BatchGetItem", key, { "CUSTOMER#id": "ann", "PRODUCT#id": "apron\nbowl", "STOCK#id": "apron\nbowl", "STOCK#location": "main", "STOCK#shard": "0" }, { ...table, strong: true });
    const { Keys, ConsistentRead } = (request.RequestItems as Record<string, { Keys: { PK: { S: string }; SK: { S: string } }[]; ConsistentRead?: boolean }>).bodega!;
    assert.deepEqual(
      Keys.map(({ PK, SK }) => `${PK.S} ${SK.S}`),
      ["CUSTOMER#ann PROFILE", "PRODUCT#apron PRODUCT", "PRODUCT#bowl PRODUCT", "STOCK#apron#main#00000000000000000000 STOCK", "STOCK#bowl#main#00000000000000000000 STOCK"],
    );
    assert.equal(ConsistentRead, true);
  });

  test("a missing value is named", () => {
    assert.deepEqual(build("GetItem", parseKeyText("PK = CART#<customer>, SK = CART"), {}, table), { missing: "customer" });
  });

  test("a path is several parts, and the top has none", () => {
    const key = "PK = CATEGORY#<path>, or CATEGORY for the top, SK under CHILD#";
    const partition = (path: string) => (one("Query", key, { "CATEGORY#path": path }).ExpressionAttributeValues as Record<string, unknown>)[":pk"];
    assert.deepEqual(partition("Kitchen > Cooking"), { S: "CATEGORY#Kitchen#Cooking" });
    assert.deepEqual(partition(""), { S: "CATEGORY" });
  });

  test("each pattern of the documents that reads gives a request", () => {
    const folder = join(import.meta.dirname, "../../../docs/access-patterns");
    let count = 0;
    for (const file of readdirSync(folder)) {
      for (const line of readFileSync(join(folder, file), "utf8").split("\n")) {
        const row = line.split(" | ").map((cell) => cell.replace(/^\| /, "").replaceAll("`", "").replaceAll("&lt;", "<"));
        if (row.length < 8 || !/^(GetItem|Query|ShardedQuery|BatchGetItem)$/.test(row[2]!)) continue;
        const text = parseKeyText(row[4]!);
        const values = new Proxy({}, { get: () => "1" });
        const target = { ...table, index: row[3] === "table" ? undefined : { name: row[3]!, partition_key: `${row[3]}PK`, sort_key: `${row[3]}SK` }, shards: 2 };
        const made = build(row[2]!, text, values, target);
        assert.ok(Array.isArray(made) && made.length > 0, `${row[0]}: ${row[4]}`);
        assert.ok(!/[<>…]/.test(JSON.stringify(made).replace(/SK [<>]=? :/g, "")), `${row[0]}: ${JSON.stringify(made)}`);
        count++;
      }
    }
    assert.ok(count > 120, `${count} patterns`);
  });
});

test("the form of addresses requires a postal code in the same countries as the API", () => {
  const read = (path: string) => readFileSync(join(import.meta.dirname, "../../..", path), "utf8");
  const rules = read("shared/key-schema/src/customers/address/postal_code.rs").matchAll(/^    \("([A-Z ]+)", true,/gm);
  const listed = /WITH_POSTAL_CODE =\s*"([A-Z ]+)"/.exec(read("site/src/lib/countries.ts"))?.[1];
  assert.equal(listed, Array.from(rules, ([, countries]) => countries!.split(" ")).flat().sort().join(" "));
});
