import { unwrap } from "@bodega/client";
import { api, type Schemas } from "../lib/api";
import { hasCode } from "../lib/problems";
import { type Card, hit, listed } from "./products";

export const SORTS = {
  "": "Best match",
  newest: "Newest",
  price_asc: "Price, lowest first",
  price_desc: "Price, highest first",
  name: "Name",
} as const;

export type Sort = keyof typeof SORTS;

/** What a list shows: the parameters of its address, and the category of its page. */
export interface Filters {
  q: string;
  within?: string | undefined;
  categories: string[];
  brands: string[];
  inStock: boolean;
  min?: number | undefined;
  max?: number | undefined;
  sort: Sort;
}

export interface Found {
  cards: Card[];
  /** Without a search index, nobody counts. */
  total?: number;
  facets?: Schemas["Facets"];
  next: string | null;
}

export function filtersOf(query: URLSearchParams, within?: string): Filters {
  const sort = query.get("sort") ?? "";
  return {
    q: query.get("q")?.trim() ?? "",
    within,
    categories: query.getAll("category"),
    brands: query.getAll("brand"),
    inStock: query.has("stock"),
    min: price(query.get("min")),
    max: price(query.get("max")),
    sort: sort in SORTS ? (sort as Sort) : "",
  };
}

function price(text: string | null): number | undefined {
  return text && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

export function queryOf({ q, categories, brands, inStock, min, max, sort }: Filters): string {
  const query = new URLSearchParams();
  if (q) query.set("q", q);
  for (const category of categories) query.append("category", category);
  for (const brand of brands) query.append("brand", brand);
  if (inStock) query.set("stock", "1");
  if (min !== undefined) query.set("min", `${min}`);
  if (max !== undefined) query.set("max", `${max}`);
  if (sort) query.set("sort", sort);
  const text = query.toString();
  return text && `?${text}`;
}

export const isFiltered = ({ categories, brands, inStock, min, max }: Filters): boolean =>
  categories.length + brands.length > 0 || inStock || min !== undefined || max !== undefined;

export async function find(filters: Filters, cursor: string | undefined, signal?: AbortSignal): Promise<Found> {
  try {
    const { items, total, facets, next_cursor } = await search(filters, cursor, signal);
    return { cards: items.map(hit), total, facets, next: next_cursor };
  } catch (error) {
    if (!filters.within || !hasCode(error, "search_disabled")) throw error;
    const params = { path: { path: filters.within }, query: { limit: LIMIT, cursor } };
    const { items, next_cursor } = unwrap(await api.GET("/v1/categories/{path}/products", { params, signal }));
    return { cards: items.map(listed), next: next_cursor };
  }
}

const LIMIT = 24;

async function search(
  { q, within, categories, brands, inStock, min, max, sort }: Filters,
  cursor: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Schemas["ProductSearch"]> {
  const chosen = categories.length > 0 || !within ? categories : [within];
  const query = {
    ...(q ? { q } : {}),
    ...(chosen.length > 0 ? { category: chosen } : {}),
    ...(brands.length > 0 ? { brand: brands } : {}),
    ...(inStock ? { in_stock: "true" as const } : {}),
    ...(min !== undefined ? { min_price: min } : {}),
    ...(max !== undefined ? { max_price: max } : {}),
    ...(sort ? { sort } : {}),
    ...(cursor ? { cursor } : {}),
    limit: LIMIT,
  };
  return unwrap(await api.GET("/v1/search/products", { params: { query }, signal }));
}
