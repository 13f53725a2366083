import type { Schemas } from "./api";

export type Status = Schemas["OrderStatus"];

/** The statuses in the words of the people who handle the orders. */
export const STATUS: Record<Status, string> = {
  paid: "To pick",
  picking: "Picking",
  shipped: "Shipped",
  delivered: "Delivered",
  pending: "Unpaid",
  returned: "Returned",
  cancelled: "Cancelled",
};

/** The names of the changes that lead to a status. */
export const STEPS: Record<Status, string> = {
  pending: "",
  paid: "Mark as paid",
  picking: "Start picking",
  shipped: "Ship",
  delivered: "Mark as delivered",
  returned: "Take back",
  cancelled: "Cancel",
};

/** The changes that end an order's way, and that a person confirms first. */
export const FINAL: ReadonlySet<Status> = new Set(["cancelled", "returned"]);

/** What the API permits from each status. Only lists name the changes, not a single order. */
export const NEXT: Record<Status, Status[]> = {
  pending: ["paid", "cancelled"],
  paid: ["picking", "cancelled"],
  picking: ["shipped", "cancelled"],
  shipped: ["delivered"],
  delivered: ["returned"],
  cancelled: [],
  returned: [],
};

export const METHODS: Record<Schemas["Payment"]["method"], string> = {
  card: "Card",
  wallet: "Wallet",
  manual: "Reported by staff",
};

export const orderHref = (id: string): string => `/staff/orders/${encodeURIComponent(id)}`;
export const customerHref = (id: string): string => `/staff/customers/${encodeURIComponent(id)}`;
export const productHref = (id: string): string => `/staff/products/${encodeURIComponent(id)}`;

/** The customer of an order in a list, in which a guest has only a long id. */
export const buyer = (id: string): string => (id.startsWith("guest:") ? "Guest" : id);
export const isGuest = (id: string): boolean => id.startsWith("guest:");
