const number = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const precise = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 3 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export const bytes = (n: number): string => (n < 1000 ? `${n} B` : `${number.format(n / 1000)} KB`);
export const amount = (n: number): string => number.format(n);
export const dollars = (n: number): string => `$${precise.format(n)}`;
export const duration = (micros: number): string =>
  micros < 1000 ? `${micros} µs` : `${number.format(micros / 1000)} ms`;
export const at = (instant: string): string => clock.format(new Date(instant));
export const expiry = (seconds: string): string => moment.format(new Date(Number(seconds) * 1000));

export function units({ read, write }: { read: number; write: number }): string {
  const parts = [read > 0 ? `${amount(read)} read` : "", write > 0 ? `${amount(write)} write` : ""].filter(Boolean);
  return parts.length > 0 ? `${parts.join(" + ")} ${read + write === 1 ? "unit" : "units"}` : "no units";
}

const HUES = [12, 32, 52, 78, 110, 142, 168, 195, 225, 252, 280, 305, 335];

/** Returns the hue of an entity, which is the same on every page. */
export function hue(name: string): number {
  const hash = [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) >>> 0, 7);
  return HUES[hash % HUES.length]!;
}
