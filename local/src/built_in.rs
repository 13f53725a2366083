//! Holds the files that are compiled into the program, so that a downloaded program runs without
//! its source.

pub(crate) const TEMPLATE: &str = include_str!("../../template.yaml");
pub(crate) const OPENAPI: &str = include_str!("../../openapi.yaml");

/// Each route with its access patterns.
pub(crate) const ROUTES: &str = include_str!("../../docs/routes.json");
/// The measured cost of each access pattern.
pub(crate) const COSTS: &str = include_str!("../../docs/cost.json");
pub(crate) const PRICES: &str = include_str!("../../ops/prices/2026-11.toml");

/// The categories, zones, tax rules and promotions of `--demo`.
pub(crate) const DEMO_SHOP: &str = include_str!("../demo/shop.json");
pub(crate) const DEMO_PRODUCTS: &str = include_str!("../demo/products.json");
pub(crate) const DEMO_CUSTOMERS: &str = include_str!("../demo/customers.json");
pub(crate) const DEMO_ORDERS: &str = include_str!("../demo/orders.json");

macro_rules! pictures {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../demo/pictures/", $name, ".webp")))),*]
    };
}

/// The pictures of `--demo`, in WebP, by name.
pub(crate) const DEMO_PICTURES: &[(&str, &[u8])] = pictures![
    "apron",
    "basil",
    "bath-towel",
    "blossom-honey",
    "book-birds",
    "book-bread",
    "book-walks",
    "building-blocks",
    "cactus",
    "canvas-tote",
    "cast-iron-pan",
    "cereal-bowl",
    "chefs-knife",
    "chess-set",
    "coffee-dripper",
    "cutting-board",
    "dark-chocolate",
    "dinner-plate",
    "dish-brush",
    "earl-grey",
    "espresso-beans",
    "espresso-beans-2",
    "filter-coffee",
    "french-press",
    "hand-grinder",
    "hot-chocolate",
    "jigsaw-puzzle",
    "kettle",
    "kite",
    "knitted-hat-blue",
    "knitted-hat-red",
    "monstera",
    "monstera-2",
    "mug-blue",
    "mug-coral",
    "mug-cream",
    "mug-sage",
    "notebook",
    "notebook-2",
    "oat-biscuits",
    "olive-oil",
    "olive-soap",
    "pencils",
    "peppermint-tea",
    "rain-jacket",
    "scented-candle",
    "sea-salt",
    "sencha",
    "snake-plant",
    "storage-basket",
    "strawberry-jam",
    "sunflower-seeds",
    "t-shirt-navy",
    "t-shirt-white",
    "table-lamp",
    "tea-towel",
    "teapot",
    "teapot-2",
    "teddy-bear",
    "terracotta-pot",
    "umbrella",
    "wall-clock",
    "water-carafe",
    "watering-can",
    "wooden-spoons",
    "wooden-train",
    "wool-blanket",
    "wool-scarf",
    "wool-socks",
    "wool-sweater",
];
