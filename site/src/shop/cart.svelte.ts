import { isProblem, unwrap } from "@bodega/client";
import { api, type Schemas } from "../lib/api";
import { hasCode } from "../lib/problems";
import { session } from "../lib/session.svelte";
import { onStored, store, stored } from "../lib/storage";

type Lines = Pick<Schemas["Cart"], "items" | "subtotal">;

export interface Guest {
  id: string;
  token: string;
}

/** The cart of the customer, or of a visitor whose browser keeps the cart's id and token. */
class Cart {
  /** The pieces, for the badge of each page without a request. */
  count = $state(stored<number>("count") ?? 0);
  lines = $state.raw<Lines>();
  #changes = 0;
  #last: Promise<void> = Promise.resolve();

  constructor() {
    onStored("count", () => {
      this.count = stored<number>("count") ?? 0;
      if (this.lines) void this.read().catch(() => undefined);
    });
  }

  get guest(): Guest | undefined {
    return session.person ? undefined : stored<Guest>("cart");
  }

  async read(): Promise<Lines> {
    const { guest } = this;
    if (session.person) {
      return this.#show(unwrap(await api.GET("/v1/customers/{id}/cart", { params: { path: { id: "me" } } })));
    }
    if (!guest) return this.#show({ items: [], subtotal: null });
    try {
      return this.#show(unwrap(await api.GET("/v1/carts/{id}", { params: access(guest) })));
    } catch (error) {
      // The cart has expired, or was ordered or claimed in another tab.
      if (!hasCode(error, "not_found")) throw error;
      this.forget();
      return this.#show({ items: [], subtotal: null });
    }
  }

  async add(product: string, pieces: number): Promise<void> {
    const { items } = await this.read();
    const held = items.find(({ product_id }) => product_id === product)?.quantity ?? 0;
    await this.#put(product, held + pieces);
    this.#count(this.count + pieces);
  }

  /** Sets the pieces of a line. The page shows them at once, and quick changes are sent in order. */
  async set(product: string, quantity: number): Promise<void> {
    const change = ++this.#changes;
    if (this.lines) {
      const items = this.lines.items.map((line) => (line.product_id === product ? { ...line, quantity } : line));
      this.#show({ ...this.lines, items });
    }
    const write = this.#last.then(() => this.#put(product, quantity));
    this.#last = write.catch(() => undefined);
    try {
      await write;
    } finally {
      if (change === this.#changes) await this.read();
    }
  }

  async #put(product: string, quantity: number): Promise<void> {
    const body = { quantity };
    if (session.person) {
      const path = { id: "me", product };
      unwrap(await api.PUT("/v1/customers/{id}/cart/items/{product}", { params: { path }, body }));
    } else {
      const guest = this.guest ?? (await this.#create());
      const { path, header } = access(guest);
      const params = { path: { ...path, product }, header };
      unwrap(await api.PUT("/v1/carts/{id}/items/{product}", { params, body }));
    }
  }

  async remove(product: string): Promise<void> {
    const { guest } = this;
    if (session.person) {
      unwrap(
        await api.DELETE("/v1/customers/{id}/cart/items/{product}", { params: { path: { id: "me", product } } }),
      );
    } else if (guest) {
      const { path, header } = access(guest);
      unwrap(await api.DELETE("/v1/carts/{id}/items/{product}", { params: { path: { ...path, product }, header } }));
    }
    await this.read();
  }

  /** Adds the visitor's cart to the cart of the customer who has just signed in. */
  async claim(): Promise<void> {
    const guest = stored<Guest>("cart");
    if (guest) {
      const body = { cart_id: guest.id, cart_token: guest.token };
      const params = { path: { id: "me" } };
      const { error, response } = await api.POST("/v1/customers/{id}/cart/claim", { params, body });
      // A cart that does not exist any more has nothing to claim. Otherwise the next sign-in tries again.
      if (response.ok || isProblem(error, "not_found")) store("cart", undefined);
    }
    await this.read();
  }

  /** Forgets the cart of this browser after its order, its claim or a sign-out. */
  forget(): void {
    store("cart", undefined);
    this.#show({ items: [], subtotal: null });
  }

  async #create(): Promise<Guest> {
    const { id, token } = unwrap(await api.POST("/v1/carts", {}));
    store("cart", { id, token });
    return { id, token };
  }

  #show(lines: Lines): Lines {
    this.lines = lines;
    this.#count(lines.items.reduce((sum, { quantity }) => sum + quantity, 0));
    return lines;
  }

  #count(pieces: number): void {
    this.count = pieces;
    store("count", pieces);
  }
}

export const access = ({ id, token }: Guest) => ({ path: { id }, header: { "Cart-Token": token } });

export const cart = new Cart();
