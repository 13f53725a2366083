/** Values of the browser, or of a tab's session. A browser may refuse, and then they last as long as the page. */
type Area = "localStorage" | "sessionStorage";

const page = new Map<string, unknown>();

export function stored<T>(name: string, area: Area = "localStorage"): T | undefined {
  try {
    const text = window[area].getItem(`bodega.${name}`);
    if (text !== null) return JSON.parse(text) as T;
  } catch {
    // The value is unreadable, or the browser refuses.
  }
  return page.get(name) as T | undefined;
}

export function store(name: string, value: unknown, area: Area = "localStorage"): void {
  if (value === undefined) page.delete(name);
  else page.set(name, value);
  try {
    if (value === undefined) window[area].removeItem(`bodega.${name}`);
    else window[area].setItem(`bodega.${name}`, JSON.stringify(value));
  } catch {
    // The page keeps the value.
  }
}

/** Calls `changed` when another tab has changed a value. */
export function onStored(name: string, changed: () => void): void {
  addEventListener("storage", ({ key }) => {
    if (key === `bodega.${name}` || key === null) changed();
  });
}
