import { unwrap } from "@bodega/client";
import { config } from "../lib/config";
import type { OrderAccess } from "./orders";

/**
 * The module at `cardForm` of `/config.json`, such as one that loads Stripe Elements.
 *
 * It is not a part of this build, because the provider's script comes from the provider.
 */
export interface CardForm {
  /** Shows the form in an element. `confirm` returns false if the provider declines the card. */
  show(element: HTMLElement, clientSecret: string): Promise<{ confirm(): Promise<boolean> }>;
}

export const cardForm = (): Promise<CardForm> => import(/* @vite-ignore */ config.cardForm!);

export const TEST_CARDS = {
  pm_card_visa: "4242 4242 4242 4242 (pays)",
  pm_card_chargeDeclined: "4000 0000 0000 0002 (declined)",
};

export type TestCard = keyof typeof TEST_CARDS;

/** Pays at the local provider, in place of the provider's form. Returns false if the card is declined. */
export async function confirmLocally(clientSecret: string, card: TestCard): Promise<boolean> {
  const [id] = clientSecret.split("_secret_");
  const response = await fetch(`${config.apiUrl}/_local/payments/${id}/confirm`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ payment_method: card }),
  });
  if (!response.ok) throw new Error(await response.text());
  return ((await response.json()) as { status: string }).status !== "requires_payment_method";
}

const TRIES = 25;
const PAUSE = 300;

/** Waits until the provider has reported that a payment is secured. Returns whether it has. */
export async function isSecured(id: string, read: OrderAccess["payments"]): Promise<boolean> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const payment = unwrap(await read()).items.find((one) => one.id === id);
    // `declined` may still tell of an earlier card of the same payment.
    if (payment?.status === "captured" || payment?.status === "authorised") return true;
    if (payment?.status === "failed" || payment?.status === "cancelled") return false;
    await new Promise((resolve) => setTimeout(resolve, PAUSE + attempt * 40));
  }
  return false;
}
