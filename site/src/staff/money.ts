import type { Schemas } from "./api";
import { minorUnits } from "../lib/format";

type Money = Schemas["Money"];

/** Returns an amount as a person types it: 1290 cents are `12.90`. */
export function typed({ amount, currency }: Money): string {
  const units = minorUnits(currency);
  return (amount / units).toFixed(Math.round(Math.log10(units)));
}

/** Reads a typed amount, with a point or a comma. Returns `undefined` for anything else. */
export function readAmount(text: string, currency: string): Money | undefined {
  if (!/^[A-Z]{3}$/.test(currency)) return undefined;
  const units = minorUnits(currency);
  const digits = Math.round(Math.log10(units));
  const match = /^\s*(\d{1,11})(?:[.,](\d+))?\s*$/.exec(text);
  if (!match || (match[2]?.length ?? 0) > digits) return undefined;
  return { amount: Number(match[1]) * units + Number((match[2] ?? "").padEnd(digits, "0") || 0), currency };
}

/** An error whose message a person reads as it is. */
export class SentenceError extends Error {}

/** Reads the amount of a form, whose message the form shows. */
export function amountOf(text: string, currency: string): Money {
  const money = readAmount(text, currency);
  if (!money) throw new SentenceError(`“${text}” is not an amount in ${currency || "a currency"}.`);
  return money;
}
