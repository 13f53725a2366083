import { type ReadInit, type Result, type Versioned, versioned } from "@bodega/client";
import { api, type Schemas } from "../lib/api";
import { store, stored } from "../lib/storage";

type Order = Schemas["Order"];
type Tag = { "If-Match": string };

/** The tokens of the orders that were placed or opened in this browser without an account. */
const tokens = () => stored<Record<string, string>>("orders") ?? {};

export const keepToken = (id: string, token: string): void => store("orders", { ...tokens(), [id]: token });

/** Keeps the token in a link to an order, as the buyer of an agent gets it, and takes it out of the address. */
export function openLink(id: string, fragment: string): void {
  const token = /^#token=([0-9a-f]{64})$/.exec(fragment)?.[1];
  if (token === undefined) return;
  keepToken(id, token);
  history.replaceState(history.state, "", location.pathname + location.search);
}

export const isGuestOrder = (id: string): boolean => id in tokens();

/** The orders of this browser, the newest first. */
export const guestOrders = (): string[] => Object.keys(tokens()).reverse();

/** Remembers for the session which order was just placed, so that its page says so. */
export const thank = (id: string): void => store("placed", id, "sessionStorage");

export const isJustPlaced = (id: string): boolean => stored<string>("placed", "sessionStorage") === id;

export interface OrderAccess {
  order: Versioned<Order>;
  payByCard(): Promise<Result<Schemas["CreatedPayment"]>>;
  payments(): Promise<Result<Pick<Schemas["PaymentList"], "items">>>;
  cancel(header: Tag): Promise<Result<Order>>;
}

/** Returns the requests of an order, with the order's token or as the customer. */
export function accessTo(id: string): OrderAccess {
  const token = tokens()[id];
  const path = { id };
  if (token === undefined) {
    const params = { path };
    return {
      order: versioned((init: ReadInit) => api.GET("/v1/orders/{id}", { params, ...init })),
      payByCard: () => api.POST("/v1/orders/{id}/payments", { params, body: { method: "card" } }),
      payments: () => api.GET("/v1/orders/{id}/payments", { params, cache: "no-store" }),
      cancel: (header) =>
        api.POST("/v1/orders/{id}/status", { params: { path, header }, body: { to: "cancelled" } }),
    };
  }
  const header = { "Order-Token": token };
  const params = { path, header };
  return {
    order: versioned(({ headers, cache }: ReadInit) =>
      // The header of the parameters and the header of the version go to the same request.
      api.GET("/v1/guest/orders/{id}", { params, headers, cache }),
    ),
    payByCard: () => api.POST("/v1/guest/orders/{id}/payments", { params, body: { method: "card" } }),
    payments: () => api.GET("/v1/guest/orders/{id}/payments", { params, cache: "no-store" }),
    cancel: (tag) =>
      api.POST("/v1/guest/orders/{id}/status", {
        params: { path, header: { ...header, ...tag } },
        body: { to: "cancelled" },
      }),
  };
}

export const STATUS: Record<Schemas["OrderStatus"], string> = {
  pending: "Waiting for payment",
  paid: "Paid",
  picking: "Being packed",
  shipped: "On its way",
  delivered: "Delivered",
  cancelled: "Cancelled",
  returned: "Returned",
};

export const METHODS: Record<Schemas["Payment"]["method"], string> = {
  card: "by card",
  wallet: "from the wallet",
  manual: "directly to the shop",
};
