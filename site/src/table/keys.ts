// The text of keys, as `shared/item-model/src/encoding.rs` writes it: parts joined by `#`, with
// every byte up to `%` escaped.

const LAST_ESCAPED = 0x25;
const DIGITS = 20;

export function encode(part: string): string {
  return Array.from(part, (character) => {
    const byte = character.codePointAt(0)!;
    return byte <= LAST_ESCAPED ? `%${byte.toString(16).toUpperCase().padStart(2, "0")}` : character;
  }).join("");
}

/** Returns the value of a part, or `undefined` for text that {@link encode} never writes. */
export function decode(text: string): string | undefined {
  const plain = text.replace(/%([01][0-9A-F]|2[0-5])/g, "");
  if ([...plain].some((character) => character.codePointAt(0)! <= LAST_ESCAPED)) return undefined;
  return text.replace(/%(..)/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
}

export const split = (key: string): string[] => key.split("#");

/** Numbers have 20 digits, so that their text sorts like their values. */
export const padded = (number: string): string => number.padStart(DIGITS, "0");

export const isPadded = (text: string): boolean => text.length === DIGITS && /^\d+$/.test(text);

/** Returns a part as people write it: without escapes and without leading zeros. */
export function shown(part: string): string {
  if (isPadded(part)) return part.replace(/^0+(?=\d)/, "");
  return decode(part) ?? part;
}

export type Value =
  | { S: string }
  | { N: string }
  | { B: string }
  | { BOOL: boolean }
  | { NULL: true }
  | { L: Value[] }
  | { M: Item }
  | { SS: string[] }
  | { NS: string[] }
  | { BS: string[] };

/** An item, or the attributes of a map, in DynamoDB's JSON. */
export type Item = { [name: string]: Value };

export function text(value: Value | undefined): string | undefined {
  if (!value) return undefined;
  if ("S" in value) return value.S;
  if ("N" in value) return value.N;
  return undefined;
}

/** Returns a value as plain JSON. */
export function plain(value: Value): unknown {
  if ("S" in value) return value.S;
  if ("N" in value) return Number.isSafeInteger(Number(value.N)) ? Number(value.N) : value.N;
  if ("BOOL" in value) return value.BOOL;
  if ("NULL" in value) return null;
  if ("L" in value) return value.L.map(plain);
  if ("M" in value) return Object.fromEntries(Object.entries(value.M).map(([name, part]) => [name, plain(part)]));
  return Object.values(value)[0];
}

const bytes = (part: string): number => new TextEncoder().encode(part).length;
const binary = (part: string): number => Math.floor((part.replace(/=+$/, "").length * 3) / 4);
const digits = (number: string): number => {
  const significant = number.replace(/^-/, "").replace(/[eE].*$/, "").replace(".", "").replace(/^0+|0+$/g, "");
  return Math.ceil(significant.length / 2) + 1 + (number.startsWith("-") ? 1 : 0);
};

function valueSize(value: Value): number {
  if ("S" in value) return bytes(value.S);
  if ("N" in value) return digits(value.N);
  if ("B" in value) return binary(value.B);
  if ("L" in value) return value.L.reduce((sum, part) => sum + valueSize(part) + 1, 3);
  if ("M" in value) return itemSize(value.M) + Object.keys(value.M).length + 3;
  if ("SS" in value) return value.SS.reduce((sum, part) => sum + bytes(part), 0);
  if ("NS" in value) return value.NS.reduce((sum, part) => sum + digits(part), 0);
  if ("BS" in value) return value.BS.reduce((sum, part) => sum + binary(part), 0);
  return 1;
}

/** Returns the size that DynamoDB charges for: the names and the values. */
export function itemSize(item: Item): number {
  return Object.entries(item).reduce((sum, [name, value]) => sum + bytes(name) + valueSize(value), 0);
}

/** Compares as DynamoDB sorts: by the bytes of UTF-8. */
export function compare(left: string, right: string): number {
  const [a, b] = [new TextEncoder().encode(left), new TextEncoder().encode(right)];
  const at = a.findIndex((byte, i) => byte !== b[i]);
  return at < 0 ? a.length - b.length : a[at]! - (b[at] ?? -1);
}
