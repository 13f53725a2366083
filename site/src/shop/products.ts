import type { Schemas } from "../lib/api";

/** What the lists of the shop show of a product. */
export interface Card {
  id: string;
  href: string;
  name: string;
  brand: string;
  size: string | null;
  price: Schemas["Price"];
  /** A former price, which is above the price. */
  former?: Schemas["CompareAt"] | null;
  thumbnail: string | null;
  rating?: { average: number | null; count: number };
  inStock?: boolean | undefined;
}

export const productHref = (id: string): string => `/p/${encodeURIComponent(id)}`;

/** Returns the path of a picture, to which the size of a copy can be added. */
export const picturePath = (product: string, picture: string): string =>
  `/v1/products/${encodeURIComponent(product)}/pictures/${picture}`;

export const variantHref = (parent: string | undefined, id: string): string =>
  parent ? `${productHref(parent)}?v=${encodeURIComponent(id)}` : productHref(id);

const SIZES = ["XXS", "XS", "S", "M", "L", "XL", "XXL", "XXXL"];

/** Sorts the sizes of clothes and numbers from small to large. Other values stay in their order. */
export function bySize(values: string[]): string[] {
  const letters = (value: string) => SIZES.indexOf(value.toUpperCase());
  const number = (value: string) => parseFloat(value.replace(",", "."));
  if (values.every((value) => letters(value) >= 0)) return [...values].sort((a, b) => letters(a) - letters(b));
  if (values.every((value) => /^\d/.test(value))) return [...values].sort((a, b) => number(a) - number(b));
  return values;
}

export const bestSeller = (entry: Schemas["LeaderboardEntry"]): Card => ({
  id: entry.product_id,
  href: productHref(entry.product_id),
  name: entry.name,
  brand: entry.brand,
  size: entry.package_size,
  price: entry.price,
  thumbnail: entry.thumbnail,
});

export const hit = (found: Schemas["ProductHit"]): Card => ({
  ...found,
  href: variantHref(found.parent, found.id),
  size: found.package_size,
  former: found.compare_at,
  inStock: found.in_stock,
});

export const listed = (product: Schemas["ProductById"]): Card => ({
  ...product,
  href: variantHref(product.parent, product.id),
  size: product.package_size,
  former: product.compare_at,
  rating: { average: product.average_rating, count: product.review_count },
  inStock: product.in_stock,
});
