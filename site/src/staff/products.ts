import type { Schemas } from "./api";
import { SentenceError, amountOf, typed } from "./money";

/** A product as the form has it: each field is text. */
export interface ProductText {
  name: string;
  brand: string;
  package_size: string;
  category: string;
  price: string;
  currency: string;
  summary: string;
  weight: string;
  shippable: boolean;
  tax_category: string;
}

const SEPARATOR = " > ";

export const categoryText = (path: readonly string[]): string => path.join(SEPARATOR);
export const categoryOf = (text: string): string[] => text.split(">").map((name) => name.trim()).filter(Boolean);

export const emptyProduct = (currency = ""): ProductText => ({
  name: "",
  brand: "",
  package_size: "",
  category: "",
  price: "",
  currency,
  summary: "",
  weight: "",
  shippable: true,
  tax_category: "standard",
});

export const textOf = (product: Schemas["Product"]): ProductText => ({
  name: product.name,
  brand: product.brand,
  package_size: product.package_size ?? "",
  category: categoryText(product.category_path),
  price: typed(product.price),
  currency: product.price.currency,
  summary: product.summary ?? "",
  weight: product.weight_grams === null ? "" : `${product.weight_grams}`,
  shippable: product.shippable,
  tax_category: product.tax_category,
});

export type ProductFields = Omit<Schemas["NewProduct"], "id" | "parent" | "options" | "stock">;

export function fieldsOf(text: ProductText): ProductFields {
  return {
    name: text.name.trim(),
    brand: text.brand.trim(),
    package_size: text.package_size.trim() || null,
    category_path: categoryOf(text.category),
    price: amountOf(text.price, text.currency.trim().toUpperCase()),
    summary: text.summary.trim() || null,
    weight_grams: wholeOf(text.weight),
    shippable: text.shippable,
    tax_category: text.tax_category.trim() || "standard",
  };
}

function wholeOf(text: string): number | null {
  if (!text.trim()) return null;
  if (!/^\d{1,12}$/.test(text.trim())) throw new SentenceError(`“${text}” is not a whole number.`);
  return Number(text);
}

/** Returns only the fields that differ, so that a change does not undo somebody else's. */
export function difference(before: ProductText, after: ProductText): Schemas["ProductPatch"] {
  const [old, next] = [fieldsOf(before), fieldsOf(after)];
  const names = Object.keys(next) as (keyof ProductFields)[];
  return Object.fromEntries(
    names.filter((name) => JSON.stringify(old[name]) !== JSON.stringify(next[name])).map((name) => [name, next[name]]),
  );
}

