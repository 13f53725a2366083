import { router } from "../lib/router.svelte";

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The place in the explorer that the address names. */
class Place {
  segments = $derived(router.url.pathname.split("/").slice(2).filter(Boolean).map(decoded));
  page = $derived(this.segments[0] === undefined || this.segments[0] === "p" ? "collections" : this.segments[0]);
  parameters = $derived(router.url.searchParams);
}

export const place = new Place();
