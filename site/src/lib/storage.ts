/** Values in `localStorage`. A browser may refuse it, and then the values last as long as the page. */
const page = new Map<string, unknown>();

export function stored<T>(name: string): T | undefined {
  try {
    const text = localStorage.getItem(`bodega.${name}`);
    if (text !== null) return JSON.parse(text) as T;
  } catch {
    // The value is unreadable, or the browser refuses.
  }
  return page.get(name) as T | undefined;
}

export function store(name: string, value: unknown): void {
  if (value === undefined) page.delete(name);
  else page.set(name, value);
  try {
    if (value === undefined) localStorage.removeItem(`bodega.${name}`);
    else localStorage.setItem(`bodega.${name}`, JSON.stringify(value));
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
