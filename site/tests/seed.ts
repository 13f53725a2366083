// Fills a new system with a small shop.
import { type Client, unwrap } from "@bodega/client";
import { picture } from "./picture.js";
import type { System } from "./system.js";

const usd = (amount: number) => ({ amount, currency: "USD" });

type Colours = Parameters<typeof picture>;

interface Goods {
  id: string;
  name: string;
  brand: string;
  path: string[];
  price: number;
  size?: string;
  summary?: string;
  former?: number;
  stock?: number;
  colours?: Colours[];
}

const GOODS: Goods[] = [
  { id: "sencha", name: "Sencha from the first harvest", brand: "Leaf & Stone", path: ["Pantry", "Tea & Coffee"], price: 1290, former: 1490, size: "100 g", summary: "A bright green tea with a soft sweetness. Two minutes at 70 °C.", colours: [[[232, 226, 205], [88, 116, 60]], [[214, 220, 200], [120, 150, 80]], [[240, 236, 224], [60, 90, 50]]] },
  { id: "assam", name: "Assam, whole leaf", brand: "Leaf & Stone", path: ["Pantry", "Tea & Coffee"], price: 990, size: "125 g", colours: [[[238, 222, 204], [134, 66, 36]]] },
  { id: "espresso", name: "Espresso beans, dark roast", brand: "Northlight", path: ["Pantry", "Tea & Coffee"], price: 1450, size: "500 g", colours: [[[226, 214, 200], [66, 44, 32]]] },
  { id: "honey", name: "Lime blossom honey", brand: "Hof Brandt", path: ["Pantry"], price: 850, size: "250 g", colours: [[[246, 234, 205], [212, 146, 38]]] },
  { id: "salt", name: "Sea salt in a jar", brand: "Hof Brandt", path: ["Pantry"], price: 450, size: "150 g" },
  { id: "teapot", name: "Stoneware teapot", brand: "Kiln", path: ["Kitchen", "Tableware"], price: 5400, stock: 3, colours: [[[230, 220, 210], [150, 92, 66]], [[222, 214, 206], [110, 80, 66]]] },
  { id: "bowl", name: "Deep bowl, ash glaze", brand: "Kiln", path: ["Kitchen", "Tableware"], price: 2800, colours: [[[228, 226, 220], [110, 124, 128]]] },
  { id: "board", name: "Oak cutting board", brand: "Werk", path: ["Kitchen"], price: 3900 },
  { id: "knife", name: "Small kitchen knife", brand: "Werk", path: ["Kitchen"], price: 4600, stock: 0 },
  { id: "blanket", name: "Wool blanket, undyed", brand: "Fell", path: ["Home"], price: 12900, colours: [[[236, 230, 220], [178, 160, 136]]] },
  { id: "candle", name: "Beeswax candles, pair", brand: "Hof Brandt", path: ["Home"], price: 1650 },
];

const REVIEWS = [
  { sub: "mira", name: "Mira", product: "sencha", rating: 5, title: "Fresh and round", text: "The best green tea I have had at home. It forgives a minute too long." },
  { sub: "jonas", name: "Jonas from Ulm", product: "sencha", rating: 4, title: "Good, a little mild", text: "Lovely colour. I take a spoon more than it says on the box." },
  { sub: "mira", name: "Mira", product: "teapot", rating: 5, title: "Pours without a drop", text: "Heavy, calm, and the lid stays where it is." },
];

export async function seed(system: System): Promise<void> {
  const staff = system.client({ sub: "sam", groups: ["staff"] });
  await Promise.all(GOODS.map((goods) => create(staff, goods)));
  await Promise.all([
    variants(staff),
    prices(staff),
    staff.PUT("/v1/products/{id}/content", {
      params: { path: { id: "sencha" }, header: { "If-None-Match": "*" } },
      body: { text: "Picked in late April, steamed at once and rolled by machine.\n\nThe leaves come from three gardens on one slope. Store the tea dark and dry, and use it within a year." },
    }).then(unwrap),
    staff.PUT("/v1/categories/{path}", {
      params: { path: { path: "Pantry" }, header: { "If-None-Match": "*" } },
      body: { title: "Pantry", description: "What keeps: tea, coffee, honey and salt." },
    }),
  ]);
  for (const { sub, name, product, ...review } of REVIEWS) {
    const customer = system.client({ sub, email: `${sub}@example.com` });
    await customer.POST("/v1/customers", { body: { name, username: sub, email: `${sub}@example.com` } });
    unwrap(
      await customer.PUT("/v1/products/{id}/reviews/{customer}", {
        params: { path: { id: product, customer: "me" }, header: { "If-None-Match": "*" } },
        body: { ...review, display_name: name },
      }),
    );
  }
  await sell(system, staff);
  await system.drain();
}

async function create(staff: Client, { id, name, brand, path, price, former, size, summary, stock, colours }: Goods): Promise<void> {
  const body = {
    id,
    name,
    brand,
    category_path: path,
    price: usd(price),
    stock: stock ?? 40,
    ...(former ? { compare_at: usd(former) } : {}),
    ...(size ? { package_size: size } : {}),
    ...(summary ? { summary } : {}),
  };
  unwrap(await staff.POST("/v1/products", { body }));
  for (const [i, pair] of (colours ?? []).entries()) {
    const bytes = picture(...pair);
    const request = { content_type: "image/png" as const, bytes: bytes.length };
    const upload = unwrap(await staff.POST("/v1/products/{id}/pictures", { params: { path: { id } }, body: request }));
    const { url, headers } = upload.upload;
    const sent = await fetch(url, { method: "PUT", headers: headers as Record<string, string>, body: new Uint8Array(bytes) });
    if (!sent.ok) throw new Error(await sent.text());
    const params = { path: { id, picture: upload.id } };
    const alt = i === 0 ? name : `${name}, view ${i + 1}`;
    unwrap(await staff.PUT("/v1/products/{id}/pictures/{picture}", { params, body: { alt } }));
  }
}

async function variants(staff: Client): Promise<void> {
  const shirt = { brand: "Loom", category_path: ["Clothes"], price: usd(6900) };
  unwrap(await staff.POST("/v1/products", { body: { ...shirt, id: "shirt", name: "Linen shirt" } }));
  for (const colour of ["Chalk", "Rust"]) {
    for (const size of ["S", "M", "L"]) {
      const id = `shirt-${colour}-${size}`.toLowerCase();
      const stock = colour === "Rust" && size === "S" ? 0 : 12;
      const body = { ...shirt, id, parent: "shirt", options: { colour, size }, name: `Linen shirt, ${colour}, ${size}`, stock };
      unwrap(await staff.POST("/v1/products", { body }));
    }
  }
}

async function prices(staff: Client): Promise<void> {
  const header = { "If-None-Match": "*" as const };
  const methods = [
    { id: "parcel", name: "Parcel", days: [2, 4], rates: [{ price: usd(490) }] },
    { id: "express", name: "Express", days: [1, 1], rates: [{ price: usd(1290) }] },
  ];
  const zone = { countries: ["DE"], methods };
  unwrap(await staff.PUT("/v1/shipping/zones/{id}", { params: { path: { id: "germany" }, header }, body: zone }));
  const austria = { countries: ["AT"], regions: ["Tirol", "Wien"], methods };
  unwrap(await staff.PUT("/v1/shipping/zones/{id}", { params: { path: { id: "austria" }, header }, body: austria }));
  const rule = { country: "DE", category: "standard", rate_basis_points: 1900, included: true };
  unwrap(await staff.PUT("/v1/tax/rules/{id}", { params: { path: { id: "germany" }, header }, body: rule }));
  const promotion = { id: "warm", name: "Warm welcome", code: "WARM10", kind: "percentage" as const, value: 1000 };
  unwrap(await staff.POST("/v1/promotions", { body: promotion }));
}

/** Ships some orders, because the best sellers count what was shipped. */
async function sell(system: System, staff: Client): Promise<void> {
  const mira = system.client({ sub: "mira", email: "mira@example.com" });
  const pieces = ["sencha", "teapot", "honey", "bowl", "espresso", "candle", "shirt-rust-m", "board"];
  const lines = pieces.map((product_id, i) => ({ product_id, quantity: i === 1 ? 1 : pieces.length - i }));
  const params = { path: { id: "me" } };
  for (const { product_id: product, quantity } of lines) {
    const path = { id: "me", product };
    unwrap(await mira.PUT("/v1/customers/{id}/cart/items/{product}", { params: { path }, body: { quantity } }));
  }
  const address = { name: "Mira Sol", line1: "Am See 1", city: "Ulm", postal_code: "89073", country: "DE" };
  const quote = unwrap(await mira.POST("/v1/customers/{id}/cart/quote", { params, body: { shipping_address: address } }));
  const order = unwrap(await mira.POST("/v1/customers/{id}/cart/checkout", { params, body: { quote_id: quote.id } }));
  await move(staff, order.id);
}

async function move(staff: Client, id: string): Promise<void> {
  const steps = [
    { to: "paid" as const },
    { to: "picking" as const },
    { to: "shipped" as const, carrier: "Parcel Post", tracking: "PP 2231 9904", message: "Packed with care." },
  ];
  let version = unwrap(await staff.GET("/v1/orders/{id}", { params: { path: { id } } })).version;
  for (const body of steps) {
    const params = { path: { id }, header: { "If-Match": `"${version}"` } };
    version = unwrap(await staff.POST("/v1/orders/{id}/status", { params, body })).version;
  }
}
