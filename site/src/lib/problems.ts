import { type Code, isProblem, ProblemError } from "@bodega/client";

/** What a customer reads. A code that is not here has the general sentence. */
const SENTENCES: Partial<Record<Code, string>> = {
  not_found: "This page or item does not exist any more.",
  account_not_found: "Complete your profile first, on the page of your account.",
  unauthenticated: "Please sign in again.",
  forbidden: "You cannot do this with your account.",
  guest_orders_disabled: "This shop takes orders only from customers with an account. Please sign in.",
  email_unverified: "Verify your email address first, on the page of your account.",
  already_exists: "This exists already.",
  email_taken: "Another account uses this email address.",
  username_taken: "Another account uses this user name. Choose another one.",
  insufficient_stock: "There are not enough pieces in stock. Lower the quantity or remove the item.",
  has_variants: "Choose a variant of this product first.",
  payment_declined: "The payment was declined. Try another card.",
  payment_action_required: "Your bank asks for a confirmation.",
  insufficient_funds: "Your wallet has too little money for this.",
  too_many_pending_orders: "You have too many unpaid orders. Pay or cancel one first.",
  quantity_limit: "An order cannot have so many pieces.",
  price_changed: "The price has changed. Look at the new total.",
  quote_required: "The price has changed. Look at the new total.",
  quote_expired: "The offer has expired. Look at the new total.",
  quote_changed: "Something in your cart has changed. Look at the new total.",
  promotion_unknown: "This code does not exist.",
  promotion_expired: "This code has expired.",
  promotion_used_up: "This code has been used up.",
  promotion_not_applicable: "This code does not apply to your cart.",
  shipping_unavailable: "We do not deliver these goods to this address.",
  illegal_transition: "The order has moved on, so this is not possible any more.",
  version_mismatch: "Somebody has changed this meanwhile. Look at it and try again.",
  invalid_body: "Some fields need another look.",
  code_invalid: "The code is wrong or too old.",
  too_many_tries: "Too many tries. Request a new code.",
  too_many_mails: "We have sent several mails already. Try again later.",
  quota_exceeded: "That was too often for today. Try again later.",
  too_many_lines: "The cart is full.",
  unknown_product: "This product is not sold any more.",
  cart_empty: "Your cart is empty.",
  search_disabled: "This shop has no search.",
  card_payments_disabled: "This shop does not take cards.",
  maintenance: "The shop is being maintained. You can look around, and order again later.",
  throttled: "Many people shop at this moment. Try again.",
  stock_unavailable: "We cannot check the stock at this moment. Try again.",
  unavailable: "The shop is not reachable at this moment. Try again.",
};

const REASONS: Record<string, string> = {
  not_yet_valid: "This code is not valid yet.",
  tier_too_low: "This code is for customers of a higher tier.",
  not_first_order: "This code is only for a first order.",
  account_required: "This code needs an account. Please sign in.",
  no_goods: "This code is for goods that are not in your cart.",
  minimum_not_reached: "Your cart is below the minimum for this code.",
  not_combinable: "This code cannot be combined with the other discounts.",
};

export function explain(error: unknown): string {
  const problem = error instanceof ProblemError ? error.problem : isProblem(error) ? error : undefined;
  if (problem) {
    const reasons = (problem.errors ?? []) as { reason?: string }[];
    const reason = reasons.map(({ reason }) => REASONS[reason ?? ""]).find(Boolean);
    return reason ?? listed(error) ?? SENTENCES[problem.code] ?? "Something went wrong on our side. Try again.";
  }
  if (error instanceof ProblemError && error.status === 401) return "Please sign in again.";
  if (error instanceof TypeError) return "The shop is not reachable. Check your connection and try again.";
  return "Something went wrong on our side. Try again.";
}

/** The labels of fields by the last name in a pointer. */
const LABELS: Record<string, string> = {
  email: "Email",
  name: "Name",
  username: "User name",
  line1: "Street and number",
  line2: "Flat, floor, company",
  postal_code: "Postal code",
  city: "City",
  region: "Region",
  country: "Country",
  phone: "Phone",
  display_name: "Name",
  title: "Title",
  text: "Text",
};

const LAST = /[^/]*$/;

/** Returns the problems of the fields of a refused form. */
function refusals(error: unknown): { pointer: string; detail: string }[] {
  const problem = error instanceof ProblemError ? error.problem : undefined;
  const entries = problem?.code === "invalid_body" ? (problem.errors ?? []) : [];
  return entries.map(({ pointer, detail }) => ({ pointer: pointer ?? "", detail: detail ?? "is not valid" }));
}

/** Returns which fields of a refused form need another look. */
function listed(error: unknown): string | undefined {
  const labels = refusals(error).map(({ pointer }) =>
    pointer.endsWith("address/name") ? "Recipient" : LABELS[LAST.exec(pointer)![0]],
  );
  const known = [...new Set(labels.filter((label) => label !== undefined))];
  return known.length > 0 ? `Please look again at: ${known.join(", ")}.` : undefined;
}

/** Returns a sentence for the API's detail of a field, which continues the field's name. */
function sentence(detail: string): string {
  if (/bytes of UTF-8|visible character/.test(detail)) return "This is empty or too long.";
  if (/^must be an email address/.test(detail)) return "This is not an email address.";
  if (/control characters/.test(detail)) return "This has characters that are not allowed.";
  return `This ${detail}.`;
}

/** Returns the messages of a refused form by the last name in each pointer, or only those below `under`. */
export function fieldErrors(error: unknown, under?: string): Record<string, string> {
  const found = refusals(error).filter(({ pointer }) => under === undefined || pointer.replace(LAST, "") === `${under}/`);
  return Object.fromEntries(found.map(({ pointer, detail }) => [LAST.exec(pointer)![0], sentence(detail)]));
}

export const hasCode = (error: unknown, ...codes: Code[]): boolean =>
  error instanceof ProblemError && error.problem !== undefined && codes.includes(error.problem.code);

/** Returns the id that support needs, for an error that the customer cannot resolve. */
export function reference(error: unknown): string | null {
  if (!(error instanceof ProblemError) || error.status < 500) return null;
  return error.requestId;
}
