import type { Schemas } from "./api";

type Money = Schemas["Money"];

const currencies = new Map<string, Intl.NumberFormat>();

function format(currency: string): Intl.NumberFormat {
  let known = currencies.get(currency);
  if (!known) {
    known = new Intl.NumberFormat(undefined, { style: "currency", currency });
    currencies.set(currency, known);
  }
  return known;
}

/** Returns how many minor units a major unit has: 100 for USD, 1 for JPY. */
export function minorUnits(currency: string): number {
  return 10 ** (format(currency).resolvedOptions().maximumFractionDigits ?? 2);
}

export function money({ amount, currency }: Money): string {
  return format(currency).format(amount / minorUnits(currency));
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export const date = (instant: string): string => day.format(new Date(instant));
export const time = (instant: string): string => minute.format(new Date(instant));

export function days([first, last]: readonly number[]): string {
  if (first === undefined) return "";
  const text = last === undefined || first === last ? `${first}` : `${first}–${last}`;
  return `${text} ${text === "1" ? "day" : "days"}`;
}

/** Returns the text as an order's number, which has two groups of four and none of I, L, O, S, U, 0 and 1. */
export function orderNumber(text: string): string | undefined {
  const [, first, second] = /^([2-9A-HJKMNP-RTV-Z]{4})[- ]?([2-9A-HJKMNP-RTV-Z]{4})$/i.exec(text.trim()) ?? [];
  return first && second && `${first}-${second}`.toUpperCase();
}

export const count = (n: number, one: string, many = `${one}s`): string =>
  `${n.toLocaleString()} ${n === 1 ? one : many}`;
