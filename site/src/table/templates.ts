// Reads the key texts of access patterns, such as `PK = ORDER#<id>, SK under ITEM#`, and builds
// DynamoDB's requests from them.
import { compare, encode, type Item, padded, split } from "./keys.js";

export type Piece = { text: string } | { name: string };

/** A key with placeholders. `end` is a delimiter or a `$` after the last part. */
export interface Template {
  parts: Piece[];
  end: "" | "#" | "$";
}

export type Range =
  | { is: "any" }
  | { is: "equal"; keys: Template[] }
  | { is: "under"; key: Template }
  | { is: "between"; from: Template; to: Template | undefined }
  | { is: "upTo" | "below"; to: Template };

export interface Clause {
  partitions: Template[];
  range: Range;
  /** The words after "for each" or "for every". */
  each: string | undefined;
  /** A write only checks the item. */
  check: boolean;
}

export interface KeyText {
  clauses: Clause[];
  backward: boolean;
}

const TEMPLATE = /(?:[A-Z][A-Z0-9]*|<[^<>]+>|…)(?:#(?:<[^<>]+>|[A-Za-z0-9-]+|…)?)*\$?/g;

export function parseTemplate(source: string): Template {
  const end = source.endsWith("$") ? "$" : source.endsWith("#") ? "#" : "";
  const parts = split(end ? source.slice(0, -1) : source).map((part): Piece => {
    const name = part === "…" ? part : /^<(.+)>$/.exec(part)?.[1];
    return name === undefined ? { text: part } : { name };
  });
  return { parts, end };
}

const templates = (source: string): Template[] => (source.match(TEMPLATE) ?? []).map(parseTemplate);

/** Reads a key text. Words that are not part of a key, such as conditions, are left out. */
export function parseKeyText(source: string): KeyText {
  const clauses: Clause[] = [];
  for (const clause of source.split(/(?=\b(?:GSI\d)?PK = )/)) {
    const found = /^(?:GSI\d)?PK = ([^,;]*(?:, or [A-Z#<>a-z ]+)?)(.*)$/s.exec(clause.trim());
    if (!found) continue;
    const partitions = templates(found[1]!.replace(/\((?:check|checks)\)/, ""));
    const rest = found[2]!;
    const each = /\bfor (?:each|every|all|up to)\b([^,;]*)/.exec(clause)?.[1]?.trim();
    // One partition may have several sort keys, each with words of its own.
    for (const sort of sorts(rest)) {
      clauses.push({ partitions, range: parseRange(sort), each, check: /\(checks?\)/.test(sort) });
    }
  }
  return { clauses, backward: /\bbackward\b/.test(source) };
}

function sorts(rest: string): string[] {
  const found = rest.split(/(?=\b(?:GSI\d)?SK (?:=|under|from|between|up to|below))/).slice(1);
  return found.length > 0 ? found : [""];
}

function parseRange(source: string): Range {
  const words = /^(?:GSI\d)?SK (=|under|from|between|up to|below)\s(.*)$/s.exec(source.trim());
  if (!words) return { is: "any" };
  const [, operator, all] = words as unknown as [string, string, string];
  const [before] = all.split(/, or under|;|, for |, backward/);
  const keys = templates(before!.replace(/\([^)]*\)/g, ""));
  const [first, second] = keys;
  if (!first) return { is: "any" };
  if (operator === "=") return { is: "equal", keys };
  if (operator === "under") return { is: "under", key: first };
  if (operator === "up to") return { is: "upTo", to: first };
  if (operator === "below") return { is: "below", to: first };
  return { is: "between", from: first, to: second };
}

/** The first part, which names the kind of partition. */
export const head = ({ parts: [first] }: Template): string => (first && "text" in first ? first.text : "");

/** Returns the name of the field for a placeholder. `<id>` of two kinds of partitions is two fields. */
export const field = (kind: string, name: string): string => `${kind}#${name}`;

export interface Placeholder {
  field: string;
  name: string;
  kind: string;
  many: boolean;
}

export function placeholders({ clauses }: KeyText): Placeholder[] {
  const found = new Map<string, Placeholder>();
  for (const { partitions, range, each } of clauses) {
    for (const template of [...partitions, ...rangeTemplates(range)]) {
      const kind = head(partitions[0]!);
      for (const part of template.parts) {
        if (!("name" in part)) continue;
        const id = field(kind, part.name);
        found.set(id, { field: id, name: part.name, kind, many: each !== undefined || (found.get(id)?.many ?? false) });
      }
    }
  }
  return [...found.values()];
}

export function rangeTemplates(range: Range): Template[] {
  if (range.is === "equal") return range.keys;
  if (range.is === "under") return [range.key];
  if (range.is === "between") return range.to ? [range.from, range.to] : [range.from];
  return range.is === "any" ? [] : [range.to];
}

const NUMBERS = /^(?:shard|number|version|next|line|rating|part|n|1|shard of the id|complement of .*|previous)$/;
/** Placeholders that stand for several parts, which people write as `Kitchen > Cooking`. */
const PATHS = /^(?:path|parent|prefix)$/;
export const PATH_SEPARATOR = " > ";

export const isPath = (name: string): boolean => PATHS.test(name);

function part(name: string, value: string): string {
  if (isPath(name)) return value.split(PATH_SEPARATOR).map((step) => encode(step.trim())).join("#");
  return NUMBERS.test(name) && /^\d+$/.test(value) ? padded(value) : encode(value);
}

export type Values = Readonly<Record<string, string | undefined>>;

/** Writes a key up to the first placeholder without a value. */
export function fill({ parts, end }: Template, kind: string, values: Values): { key: string; complete: boolean } {
  const done: string[] = [];
  for (const piece of parts) {
    const value = "text" in piece ? piece.text : values[field(kind, piece.name)]?.trim();
    if (!value) {
      // The top of a tree of paths has no part for the path.
      if ("name" in piece && isPath(piece.name)) continue;
      return { key: done.length > 0 ? `${done.join("#")}#` : "", complete: false };
    }
    done.push("text" in piece ? value : part(piece.name, value));
  }
  return { key: done.length > 0 ? done.join("#") + end : "", complete: true };
}

/** Returns the values of placeholders in a key, or `undefined` if the key has another form. */
export function match({ parts }: Template, key: string): Record<string, string> | undefined {
  const given = split(key);
  const values: Record<string, string> = {};
  let at = 0;
  for (const [i, piece] of parts.entries()) {
    if ("name" in piece && isPath(piece.name)) {
      const count = given.length - at - (parts.length - i - 1);
      if (count < 0) return undefined;
      values[piece.name] = given.slice(at, at + count).join("#");
      at += count;
      continue;
    }
    const next = given[at++];
    if (next === undefined || ("text" in piece && piece.text !== next)) return undefined;
    if ("name" in piece) values[piece.name] = next;
  }
  return at === given.length ? values : undefined;
}

export interface Target {
  table: string;
  index: { name: string; partition_key: string; sort_key: string } | undefined;
  strong: boolean;
  /** How many shards a list has. */
  shards: number;
}

export interface Request {
  operation: string;
  request: Record<string, unknown>;
}

/** Returns the requests of a pattern that reads, or the name of a placeholder that needs a value. */
export function build(operation: string, text: KeyText, values: Values, target: Target): Request[] | { missing: string } {
  const consistent = target.strong ? { ConsistentRead: true } : {};
  if (operation === "Query" || operation === "ShardedQuery") {
    const requests: Request[] = [];
    for (const clause of text.clauses) {
      for (const given of spread(clause, values, operation === "ShardedQuery" ? target.shards : 0)) {
        // A list in several partitions needs a Query of each. Otherwise they are alternatives.
        for (const template of operation === "Query" ? clause.partitions.slice(0, 1) : clause.partitions) {
          const kind = head(clause.partitions[0]!);
          const partition = fill(template, kind, given);
          if (!partition.complete) return { missing: missing(template, kind, given) };
          const sort = condition(clause.range, kind, given);
          const [pk, sk] = target.index ? [target.index.partition_key, target.index.sort_key] : ["PK", "SK"];
          const request = {
            TableName: target.table,
            ...(target.index ? { IndexName: target.index.name } : consistent),
            KeyConditionExpression: `${pk} = :pk${sort.expression.replace(/^(?=.)/, " AND ").replaceAll("SK", sk)}`,
            ExpressionAttributeValues: { ":pk": { S: partition.key }, ...sort.values },
            ...(text.backward ? { ScanIndexForward: false } : {}),
          };
          requests.push({ operation: "Query", request });
        }
      }
    }
    return requests;
  }
  const keys = new Map<string, Item>();
  for (const clause of text.clauses) {
    const kind = head(clause.partitions[0]!);
    const range = clause.range;
    // Items that are alone in a partition have the kind as their sort key.
    const sorts = range.is === "equal" ? range.keys : [parseTemplate(kind)];
    for (const given of spread(clause, values, 0)) {
      for (const template of clause.partitions) {
        for (const sort of sorts) {
          const [pk, sk] = [fill(template, kind, given), fill(sort, kind, given)];
          if (!pk.complete || !sk.complete) {
            // A batch also works without one of its kinds of items.
            if (operation === "GetItem") return { missing: missing(pk.complete ? sort : template, kind, given) };
            continue;
          }
          keys.set(`${pk.key}\n${sk.key}`, { PK: { S: pk.key }, SK: { S: sk.key } });
        }
      }
    }
  }
  const [first] = keys.values();
  if (!first) return { missing: placeholders(text)[0]?.name ?? "id" };
  if (operation === "GetItem") return [{ operation, request: { TableName: target.table, Key: first, ...consistent } }];
  return [{ operation, request: { RequestItems: { [target.table]: { Keys: [...keys.values()], ...consistent } } } }];
}

function missing({ parts }: Template, kind: string, values: Values): string {
  const found = parts.find((piece) => "name" in piece && !values[field(kind, piece.name)]?.trim());
  return found && "name" in found ? found.name : "id";
}

/** Returns the values of each repetition: the lines of the fields, and the shards without a value. */
function spread({ partitions, range, each }: Clause, values: Values, shards: number): Values[] {
  const kind = head(partitions[0]!);
  const shard = field(kind, "shard");
  let all: Values[] = [values];
  if (each !== undefined) {
    const names = [...partitions, ...rangeTemplates(range)].flatMap(({ parts }) => parts.flatMap((piece) => ("name" in piece ? [field(kind, piece.name)] : [])));
    const lines = names.map((name): [string, string[]] => [name, (values[name] ?? "").split("\n").filter(Boolean)]);
    const count = Math.max(1, ...lines.map(([, list]) => list.length));
    all = Array.from({ length: count }, (_, i) => ({
      ...values,
      ...Object.fromEntries(lines.map(([name, list]) => [name, list[i] ?? list.at(-1)])),
    }));
  }
  const isSharded = shards > 0 && partitions.some(({ parts }) => parts.some((piece) => "name" in piece && piece.name === "shard"));
  if (!isSharded || values[shard]?.trim()) return all;
  return all.flatMap((given) => Array.from({ length: shards }, (_, i) => ({ ...given, [shard]: String(i) })));
}

function condition(range: Range, kind: string, values: Values): { expression: string; values: Item } {
  const none = { expression: "", values: {} };
  switch (range.is) {
    case "any":
      return none;
    case "under": {
      const { key } = fill(range.key, kind, values);
      return key ? under(key) : none;
    }
    case "equal": {
      const { key, complete } = fill(range.keys[0]!, kind, values);
      if (complete) return { expression: "SK = :sk", values: { ":sk": { S: key } } };
      return key ? under(key) : none;
    }
    case "between": {
      const [from, to] = [fill(range.from, kind, values), range.to && fill(range.to, kind, values)];
      // Without a value, the bound is the end of the range that the key text begins.
      const high = to?.complete ? to.key : to?.key ? to.key.replace(/#$/, "$") : "";
      if (from.key && high) return { expression: "SK BETWEEN :from AND :to", values: { ":from": { S: from.key }, ":to": { S: high } } };
      if (from.key) return { expression: "SK >= :from", values: { ":from": { S: from.key } } };
      return high ? { expression: "SK <= :to", values: { ":to": { S: high } } } : none;
    }
    case "upTo": {
      const { key, complete } = fill(range.to, kind, values);
      return complete ? { expression: "SK <= :to", values: { ":to": { S: `${key}$` } } } : none;
    }
    case "below": {
      const { key, complete } = fill(range.to, kind, values);
      return complete ? { expression: "SK < :to", values: { ":to": { S: key } } } : none;
    }
  }
}

/** The range from `p#` to `p$`, because `$` directly follows `#` in byte order. */
function under(prefix: string): { expression: string; values: Item } {
  const from = prefix.endsWith("#") ? prefix : `${prefix}#`;
  return { expression: "SK BETWEEN :from AND :to", values: { ":from": { S: from }, ":to": { S: `${from.slice(0, -1)}$` } } };
}

/** Returns whether a Query that {@link build} made reads the item with this sort key. */
export function covers({ request }: Request, sortKey: string): boolean {
  const values = request.ExpressionAttributeValues as Record<string, { S: string }>;
  const expression = request.KeyConditionExpression as string;
  const [equal, from, to] = [values[":sk"]?.S, values[":from"]?.S, values[":to"]?.S];
  if (equal !== undefined && sortKey !== equal) return false;
  if (from !== undefined && compare(sortKey, from) < 0) return false;
  if (to === undefined) return true;
  return expression.includes(" < ") ? compare(sortKey, to) < 0 : compare(sortKey, to) <= 0;
}
