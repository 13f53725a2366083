import { tick } from "svelte";

interface Entry {
  key?: string;
}

const scrolls = new Map<string, number>();
let entry = "";

class Router {
  url = $state.raw(new URL(location.href));
  title = $state("");
}

export const router = new Router();

/** Sets the title of the page, which a screen reader announces after a change of the page. */
export function title(text: () => string | undefined): void {
  $effect(() => {
    const next = text();
    if (next !== undefined) router.title = next;
  });
}

export interface Change {
  replace?: boolean;
  /** The same page with other parameters: the focus and the scroll position stay. */
  stay?: boolean;
}

export function navigate(href: string, { replace = false, stay = false }: Change = {}): void {
  const url = new URL(href, location.href);
  if (!replace) entry = crypto.randomUUID();
  history[replace ? "replaceState" : "pushState"]({ key: entry }, "", url);
  show(url, stay ? undefined : 0);
}

/** Follows links inside the area without loading the document again. */
export function listen(belongs: (url: URL) => boolean): void {
  history.scrollRestoration = "manual";
  entry = (history.state as Entry | null)?.key ?? crypto.randomUUID();
  history.replaceState({ key: entry }, "");
  addEventListener("scroll", () => scrolls.set(entry, scrollY), { passive: true });
  addEventListener("popstate", ({ state }) => {
    entry = (state as Entry | null)?.key ?? "";
    show(new URL(location.href), scrolls.get(entry) ?? 0);
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest("a");
    if (!link?.href || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || !belongs(url)) return;
    if (url.hash && url.pathname === location.pathname && url.search === location.search) return;
    event.preventDefault();
    navigate(link.href);
  });
}

function show(url: URL, y: number | undefined): void {
  const isOtherPage = url.pathname !== router.url.pathname;
  router.url = url;
  if (y === undefined) return;
  void tick().then(() => {
    if (isOtherPage) document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
    scroll(y);
  });
}

/** Scrolls to a position, which exists only after the page has its data. */
function scroll(y: number): void {
  const mine = entry;
  const end = performance.now() + 1000;
  const attempt = () => {
    if (mine !== entry) return;
    scrollTo({ top: y, behavior: "instant" });
    if (Math.abs(scrollY - y) > 1 && performance.now() < end) requestAnimationFrame(attempt);
  };
  attempt();
}
