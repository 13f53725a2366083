// The model of the table, and what follows from it: names of the parts of keys, and prices.
import { orderNumber } from "../lib/format";
import { encode, type Item, isPadded, padded, split, text, type Value } from "./keys.js";
import { ask, type Cost, type Index, type Model, type Pattern, type Route } from "./local";
import { head, type KeyText, match, parseKeyText, rangeTemplates, type Template } from "./templates.js";

export let model: Model;

const patterns = new Map<string, Pattern>();
const keyTexts = new Map<string, KeyText>();
const costs = new Map<string, Cost[]>();
/** The key templates of the table and of each index: of partition keys, and of sort keys. */
const forms = new Map<string, { partitions: Template[]; sorts: Template[] }>();

export async function loadModel(): Promise<void> {
  model = await ask<Model>("/_local/table");
  for (const pattern of model.areas.flatMap((area) => area.patterns)) {
    patterns.set(pattern.id, pattern);
    const parsed = parseKeyText(pattern.key);
    keyTexts.set(pattern.id, parsed);
    const place = indexOf(pattern)?.name ?? "";
    const form = forms.get(place) ?? { partitions: [], sorts: [] };
    forms.set(place, form);
    for (const { partitions, range } of parsed.clauses) {
      form.partitions.push(...partitions);
      form.sorts.push(...rangeTemplates(range).filter(({ end }) => end === ""));
    }
  }
  for (const cost of model.costs) costs.set(cost.pattern, [...(costs.get(cost.pattern) ?? []), cost]);
}

export const patternOf = (id: string): Pattern | undefined => patterns.get(id);
export const keyTextOf = (id: string): KeyText => keyTexts.get(id) ?? { clauses: [], backward: false };
export const costsOf = (id: string): Cost[] => costs.get(id) ?? [];
export const routeOf = (name: string): Route | undefined => model.routes.find(({ route }) => route === name);
export const indexNamed = (name: string | null | undefined): Index | undefined =>
  model.indexes.find((index) => index.name === name);
export const indexOf = ({ index }: Pattern): Index | undefined => indexNamed(index);
export const isRead = ({ operation }: Pattern): boolean => /^(GetItem|Query|ShardedQuery|BatchGetItem)$/.test(operation);
export const isStrong = ({ consistency }: Pattern): boolean => consistency.startsWith("strong");

/** Returns the patterns that can read a partition with one Query. */
export function readers(key: string, index: Index | undefined): Pattern[] {
  return [...patterns.values()].filter(
    (pattern) =>
      /Query$/.test(pattern.operation) &&
      indexOf(pattern)?.name === index?.name &&
      keyTextOf(pattern.id).clauses[0]?.partitions.some((template) => match(template, key)),
  );
}

/** Returns the first words of the partition keys, which tell the kinds of partitions apart. */
export function heads(index: Index | undefined): string[] {
  const all = forms.get(index?.name ?? "")?.partitions ?? [];
  return [...new Set(all.map(head).filter(Boolean))].sort();
}

/** Returns the keys of the table that a number, an id or a name without its first word may stand for. */
export function guesses(typed: string): string[] {
  const text = typed.trim();
  if (!text || text.includes("#")) return [];
  const number = orderNumber(text) ?? (/^[0-9A-Z]{4}-[0-9A-Z]{0,3}$/i.test(text) ? text.toUpperCase() : undefined);
  const order = /^[0-9a-f]{8}-[0-9a-f-]*$/i.test(text) ? text.toLowerCase() : undefined;
  return [...(number ? [`NUMBER#${number}`] : []), ...(order ? [`ORDER#${order}`] : []), `PRODUCT#${encode(text)}`, `CUSTOMER#${encode(text)}`];
}

export interface Part {
  text: string;
  /** What the part is, such as the name of an attribute. Undefined for the fixed first word. */
  label: string | undefined;
}

/** Attributes that have the same value as others by chance, so they are named last. */
const LATE = /^(entity|version|rev|born|created_at|updated_at|req|ttl)$/;

/** Splits a key, and names its parts after the item's attributes, or after the key templates. */
export function partsOf(key: string, place: { item?: Item | undefined; index?: Index | undefined; sort?: boolean }): Part[] {
  const form = forms.get(place.index?.name ?? "");
  const template = (place.sort ? form?.sorts : form?.partitions)?.map((one) => named(one, key)).find(Boolean);
  const attributes = place.item ? flatten(place.item) : [];
  return split(key).map((part, i) => {
    if (template?.[i] === null || (i === 0 && isWord(part))) return { text: part, label: undefined };
    const found = attributes.find(({ texts }) => texts.includes(part))?.name ?? dated(part, attributes);
    if (!found && !template && isWord(part)) return { text: part, label: undefined };
    return { text: part, label: found ?? template?.[i] ?? (isPadded(part) ? "number" : undefined) };
  });
}

const isWord = (part: string): boolean => /^[A-Z]+$/.test(part);

/** Returns the placeholder of each part, and null for a fixed word. */
function named(template: Template, key: string): (string | null)[] | undefined {
  // A form without a first word, such as `<day>#<shard>`, would fit many keys that have one.
  const [first] = template.parts;
  if ((first && "name" in first && isWord(split(key)[0]!)) || !match(template, key)) return undefined;
  const names = template.parts.map((piece) => ("name" in piece ? piece.name : null));
  const given = split(key).length;
  // A path is one placeholder for several parts.
  const at = names.findIndex((name) => name === "path" || name === "parent");
  if (at >= 0) names.splice(at, 1, ...Array<string>(Math.max(0, given - names.length + 1)).fill(names[at]!));
  return names;
}

interface Attribute {
  name: string;
  texts: string[];
  value: string;
}

function flatten(item: Item): Attribute[] {
  const keys = new Set([model.partition_key, model.sort_key, ...model.indexes.flatMap(({ partition_key, sort_key }) => [partition_key, sort_key])]);
  const all: Attribute[] = [];
  const add = (name: string, value: Value): void => {
    const plain = text(value);
    if (plain !== undefined) all.push({ name, value: plain, texts: "N" in value ? [padded(plain)] : [encode(plain)] });
    else if ("L" in value) value.L.forEach((part, i) => add(`${name}[${i}]`, part));
    else if ("M" in value) Object.entries(value.M).forEach(([inner, part]) => add(`${name}.${inner}`, part));
  };
  for (const [name, value] of Object.entries(item)) if (!keys.has(name)) add(name, value);
  const rank = ({ name }: Attribute) => (LATE.test(name) ? 2 : name.includes(".") ? 1 : 0);
  return all.sort((a, b) => rank(a) - rank(b) || a.name.length - b.name.length);
}

/** Names a part that is the year, the month or the day of an instant. */
function dated(part: string, attributes: Attribute[]): string | undefined {
  const unit = { 4: "year", 7: "month", 10: "day" }[part.length];
  if (!unit || !/^\d{4}(-\d\d){0,2}$/.test(part)) return undefined;
  const found = attributes.find(({ value }) => value.length > part.length && value.startsWith(`${part}-`) === (part.length < 10) && value.startsWith(part));
  return found ? `${unit} of ${found.name}` : undefined;
}

/** Dollars for a million units. */
const perMillion = (price: number | string): number => (Number(price) < 0.001 ? Number(price) * 1e6 : Number(price));

export interface Units {
  read: number;
  write: number;
}

/** Returns the price of a million such requests, in dollars. */
export const price = ({ read, write }: Units): number =>
  read * perMillion(model.prices.read_unit) + write * perMillion(model.prices.write_unit);

export function unitsOfCost({ half_read_units, write_units }: Cost): Units {
  return { read: half_read_units / 2, write: Object.values(write_units).reduce((sum, units) => sum + units, 0) };
}

/** Returns the measured units of a pattern in its first measured case. */
export function unitsOfPattern(id: string): Units {
  const [first] = costsOf(id);
  return first ? unitsOfCost(first) : { read: 0, write: 0 };
}

export function unitsOfUses(uses: Record<string, number> = {}): Units {
  const sum = { read: 0, write: 0 };
  for (const [id, times] of Object.entries(uses)) {
    const { read, write } = unitsOfPattern(id);
    sum.read += read * times;
    sum.write += write * times;
  }
  return sum;
}

const KINDS: Record<string, string> = {
  customer_id: "CUSTOMER", followed_id: "CUSTOMER", follower_id: "CUSTOMER", owner_id: "CUSTOMER", inviter: "CUSTOMER",
  counterparty: "CUSTOMER", product_id: "PRODUCT", parent: "PRODUCT", order_id: "ORDER", question_id: "QUESTION",
  document_id: "DOC", organization_id: "ORG", store_id: "STORE", invoice_number: "INVOICE", promotion_id: "PROMOTION",
  username: "USERNAME", email: "EMAIL", order_number: "NUMBER",
};
const IDS: Record<string, string> = {
  CustomerOrder: "ORDER", CustomerQuestion: "QUESTION", Member: "ORG", Invitation: "ORG", Membership: "PRODUCT",
};

/** Returns the partition that an attribute's value names. */
export function target(name: string, value: string | undefined, item: Item): string | undefined {
  if (!value) return undefined;
  const kind = name === "id" ? IDS[text(item.entity) ?? ""] : KINDS[name];
  if (!kind) return undefined;
  // A claim has the folded form of its name.
  const key = `${kind}#${encode(kind === "EMAIL" || kind === "USERNAME" ? value.toLowerCase() : value)}`;
  return key === text(item.PK) ? undefined : key;
}
