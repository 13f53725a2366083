import type { Schemas } from "./api";
import { money } from "../lib/format";
import { amountOf, SentenceError, typed } from "./money";
import { categoryOf, categoryText } from "./products";

type Promotion = Schemas["Promotion"];
export type Kind = Promotion["kind"];

export const KINDS: readonly (readonly [Kind, string])[] = [
  ["percentage", "Percentage off"],
  ["amount", "Amount off"],
  ["buy_x_get_y", "Free pieces"],
  ["free_shipping", "Free shipping"],
];

/** A promotion as the form has it: each field is text. */
export interface PromotionText {
  id: string;
  name: string;
  code: string;
  kind: Kind;
  percent: string;
  amount: string;
  currency: string;
  buy: string;
  get: string;
  goods: string;
  category: string;
  products: string;
  minimum: string;
  tier: string;
  first: boolean;
  from: string;
  until: string;
  total: string;
  each: string;
  exclusive: boolean;
  priority: string;
}

/** Returns an instant as `datetime-local` has it, in the time of the browser. */
function localTime(instant: string | null | undefined): string {
  if (!instant) return "";
  const date = new Date(instant);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function textOf(promotion: Promotion | undefined, currency: string): PromotionText {
  const { applies_to: goods = "all", conditions = {} } = promotion ?? {};
  const isObject = typeof goods === "object";
  return {
    id: promotion?.id ?? "",
    name: promotion?.name ?? "",
    code: promotion?.code ?? "",
    kind: promotion?.kind ?? "percentage",
    percent: promotion?.kind === "percentage" ? `${promotion.value / 100}` : "10",
    amount: promotion?.kind === "amount" ? typed(promotion.value) : "",
    currency: promotion?.kind === "amount" ? promotion.value.currency : (conditions.min_amount?.currency ?? currency),
    buy: promotion?.kind === "buy_x_get_y" ? `${promotion.value.buy}` : "2",
    get: promotion?.kind === "buy_x_get_y" ? `${promotion.value.get}` : "1",
    goods: !isObject ? "all" : "category" in goods ? "category" : "products",
    category: isObject && "category" in goods ? categoryText(goods.category) : "",
    products: isObject && "products" in goods ? goods.products.join(", ") : "",
    minimum: conditions.min_amount ? typed(conditions.min_amount) : "",
    tier: conditions.tier ?? "",
    first: conditions.first_order ?? false,
    from: localTime(conditions.from),
    until: localTime(conditions.until),
    total: promotion?.limit_total?.toString() ?? "",
    each: promotion?.limit_per_customer?.toString() ?? "",
    exclusive: promotion?.exclusive ?? false,
    priority: `${promotion?.priority ?? 0}`,
  };
}

function whole(text: string): number | null {
  if (!text.trim()) return null;
  const value = Number(text);
  if (!Number.isInteger(value)) throw new SentenceError(`“${text}” is not a whole number.`);
  return value;
}

function valueOf(text: PromotionText): Schemas["PromotionValue"] | undefined {
  switch (text.kind) {
    case "percentage": {
      const points = Math.round(Number(text.percent.replace(",", ".")) * 100);
      if (!(points > 0 && points <= 10_000)) throw new SentenceError("The percentage is above 0 and at most 100.");
      return points;
    }
    case "amount":
      return amountOf(text.amount, text.currency.toUpperCase());
    case "buy_x_get_y":
      return { buy: whole(text.buy) ?? 0, get: whole(text.get) ?? 0 };
    case "free_shipping":
      return undefined;
  }
}

/** Returns the fields that can change later. The kind and the code never change. */
export function changeOf(text: PromotionText): Schemas["PromotionChange"] {
  const value = valueOf(text);
  const products = text.products.split(",").map((id) => id.trim()).filter(Boolean);
  return {
    name: text.name.trim(),
    ...(value === undefined ? {} : { value }),
    applies_to:
      text.goods === "category" ? { category: categoryOf(text.category) } : text.goods === "products" ? { products } : "all",
    conditions: {
      ...(text.minimum ? { min_amount: amountOf(text.minimum, text.currency.toUpperCase()) } : {}),
      ...(text.tier ? { tier: text.tier as Schemas["Tier"] } : {}),
      ...(text.first ? { first_order: true } : {}),
      ...(text.from ? { from: new Date(text.from).toISOString() } : {}),
      ...(text.until ? { until: new Date(text.until).toISOString() } : {}),
    },
    limit_total: whole(text.total),
    limit_per_customer: whole(text.each),
    exclusive: text.exclusive,
    priority: whole(text.priority) ?? 0,
  };
}

export function creationOf(text: PromotionText): Schemas["NewPromotion"] {
  const { kind, id, code } = text;
  // The value fits the kind, which TypeScript cannot see.
  return {
    kind,
    ...(id.trim() ? { id: id.trim() } : {}),
    ...(code.trim() ? { code: code.trim() } : {}),
    ...changeOf(text),
  } as Schemas["NewPromotion"];
}

/** Says in one line what a promotion does, and when. */
export function summary(promotion: Promotion): string {
  const { applies_to: goods, conditions } = promotion;
  const what = (() => {
    switch (promotion.kind) {
      case "percentage":
        return `${promotion.value / 100} % off`;
      case "amount":
        return `${money(promotion.value)} off`;
      case "buy_x_get_y":
        return `${promotion.value.get} free with ${promotion.value.buy}`;
      case "free_shipping":
        return "free shipping";
    }
  })();
  const where = typeof goods === "string" ? "" : "category" in goods ? goods.category.join(" › ") : goods.products.join(", ");
  return [
    what,
    where,
    conditions.min_amount && `from ${money(conditions.min_amount)}`,
    conditions.tier && `from tier ${conditions.tier}`,
    conditions.first_order && "first order",
    conditions.from && `from ${new Date(conditions.from).toLocaleDateString()}`,
    conditions.until && `until ${new Date(conditions.until).toLocaleDateString()}`,
  ]
    .filter(Boolean)
    .join(", ");
}
