const DAY = 24 * 3600 * 1000;

/** Returns the days up to today in UTC, in which the API counts, the oldest first. */
export function lastDays(count: number, now = Date.now()): string[] {
  return Array.from({ length: count }, (_, i) => new Date(now - (count - 1 - i) * DAY).toISOString().slice(0, 10));
}

export const months = (days: readonly string[]): string[] => [...new Set(days.map((day) => day.slice(0, 7)))];

const short = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
export const shortDay = (day: string): string => short.format(new Date(`${day}T00:00:00Z`));

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** Returns how long ago an instant was: `3 hours ago`. */
export function ago(instant: string, now = Date.now()): string {
  const seconds = (Date.parse(instant) - now) / 1000;
  const units = [
    ["day", 86_400],
    ["hour", 3600],
    ["minute", 60],
  ] as const;
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return "just now";
}
