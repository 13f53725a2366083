//! `ops feed`: writes the catalogue as a product feed of the Agentic Commerce Protocol
//! (<https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/blob/main/rfcs/rfc.product_feeds.md>).
//!
//! An agent loads the two files as a whole, so a product that is not in them is not in the feed any more.
//! The prices are those of the time of the run. The checkout tells the price that counts.
//!
//! A product with variants is one product of the feed, and any other product is its own only variant. The
//! ids of variants are those that a checkout takes.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use key_schema::entity::AnyEntity;
use key_schema::id::MediaId;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, FromItem as _};
use key_schema::money::Money;
use key_schema::product::{self, PageItem, Product};
use key_schema::settings;
use key_schema::variant::Variant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::OpsError;
use crate::items::{Items, Walk};
use crate::migrate::Speed;
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::progress::Progress;

/// Write the catalogue as a product feed for agents: `metadata.json` and `products.jsonl`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ops feed --to feed --id feed_8f3K2x\n  ops feed --to feed --id feed_8f3K2x \
                        --country US\n\nThe setting `agents` has the addresses of the shop's pages (shop_url) and of \
                        its pictures (api_url). Without one of them, the feed has none of these.")]
pub struct FeedArgs {
    /// The folder to write.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// The id that the agent has given the feed.
    #[arg(long, value_name = "ID")]
    id: String,
    /// The country for which the feed is, such as US.
    #[arg(long, value_name = "CODE")]
    country: Option<String>,
    /// How fast the command reads the table.
    #[command(flatten)]
    speed: Speed,
}

/// The number of products and variants of a feed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Fed {
    pub products: u64,
    pub variants: u64,
}

impl fmt::Display for Fed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} products with {} variants", self.products, self.variants)
    }
}

pub(crate) async fn run(args: FeedArgs) -> Result<Outcome, OpsError> {
    let FeedArgs { to, id, country, speed } = args;
    let fed = write(&Items::from_env().await?, to, &id, country.as_deref(), speed).await?;
    Ok(Outcome::new(&fed, true))
}

/// Writes the feed of a table to a folder.
///
/// # Errors
/// [`OpsError`], also if a file cannot be written. The files of an earlier run are then unchanged.
pub async fn write(items: &Items, to: PathBuf, id: &str, country: Option<&str>, speed: Speed) -> Result<Fed, OpsError> {
    let (table, pages) = (items.table(), Pages::read(items).await?);
    fs::create_dir_all(&to).map_err(OpsError::failed)?;
    let (part, products) = (to.join("products.jsonl.part"), to.join("products.jsonl"));
    let file = Mutex::new((BufWriter::new(File::create(&part).map_err(OpsError::failed)?), Fed::default()));
    let (units, progress) = (Pace::new(Some(speed.max_read_units)), Progress::new("feed", items.estimate().await?));
    let walk = Walk { entities: &[Product::NAME], segments: speed.segments, units: &units, progress: &progress };
    let take = async |_: &mut (), page: Vec<_>| {
        for item in page {
            let AnyEntity::Product(product) = AnyEntity::from_item(item)? else { continue };
            if product.retired || product.parent.is_some() {
                continue;
            }
            let mut variants = Vec::new();
            if product.variants.is_some() {
                units.admit(1).await;
                for item in table.query(&product::page(&product.id)?).await?.items {
                    if let PageItem::Variant(variant) = item {
                        variants.push(pages.variant(&variant));
                    }
                }
            } else {
                variants.push(pages.only_variant(&product));
            }
            if variants.is_empty() {
                continue;
            }
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.1.products += 1;
            file.1.variants += u64::try_from(variants.len()).unwrap_or_default();
            let line = Value::Object(pages.product(&product, &variants));
            writeln!(file.0, "{line}").map_err(OpsError::failed)?;
        }
        Ok(())
    };
    items.walk(walk, take).await?;
    let (mut file, fed) = file.into_inner().unwrap_or_else(PoisonError::into_inner);
    file.flush().map_err(OpsError::failed)?;
    let mut metadata = object([("id", id.into()), ("updated_at", json!(Instant::now()))]);
    metadata.extend(country.map(|country| ("target_country".to_owned(), country.into())));
    let described = to.join("metadata.json.part");
    fs::write(&described, Value::Object(metadata).to_string()).map_err(OpsError::failed)?;
    fs::rename(part, products).map_err(OpsError::failed)?;
    fs::rename(described, to.join("metadata.json")).map_err(OpsError::failed)?;
    Ok(fed)
}

/// The addresses of the shop, from the public setting `agents`.
#[derive(Debug, Default, Deserialize)]
struct Pages {
    shop_url: Option<String>,
    api_url: Option<String>,
}

impl Pages {
    async fn read(items: &Items) -> Result<Self, OpsError> {
        #[derive(Default, Deserialize)]
        struct Values {
            #[serde(default)]
            agents: Pages,
        }
        let settings = items.table().get(&settings::read(0)?).await?;
        let values: Values =
            settings.and_then(|settings| serde_json::from_str(&settings.values).ok()).unwrap_or_default();
        Ok(values.agents)
    }

    fn product(&self, product: &Product, variants: &[Fields]) -> Fields {
        let mut shown =
            object([("id", json!(product.id)), ("title", json!(product.name)), ("variants", json!(variants))]);
        let summary = product.summary.as_ref().map(|summary| ("description".to_owned(), json!({ "plain": summary })));
        shown.extend(summary);
        self.link(&mut shown, product.id.as_str(), &product.name, product.thumbnail.as_ref());
        shown
    }

    fn only_variant(&self, product: &Product) -> Fields {
        let price = (product.price, product.compare_at());
        let mut shown = sold(product.id.as_str(), &product.name, price, product.copied.in_stock);
        let category = product.category_path.names().join(" > ");
        shown.insert("categories".to_owned(), json!([{ "value": category, "taxonomy": "merchant" }]));
        self.link(&mut shown, product.id.as_str(), &product.name, product.thumbnail.as_ref());
        shown
    }

    fn variant(&self, variant: &Variant) -> Fields {
        let price = (variant.price, product::above(variant.compare_at, variant.price));
        let mut shown = sold(variant.product_id.as_str(), &variant.name, price, variant.in_stock);
        let options = variant.options.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        shown.insert("variant_options".to_owned(), options.collect());
        self.link(&mut shown, variant.product_id.as_str(), &variant.name, variant.thumbnail.as_ref());
        shown
    }

    fn link(&self, shown: &mut Fields, id: &str, name: &str, picture: Option<&MediaId>) {
        if let Some(shop) = &self.shop_url {
            let url = format!("{}/p/{}", shop.trim_end_matches('/'), http_api::url::encode(id));
            shown.insert("url".to_owned(), url.into());
        }
        if let (Some(api), Some(picture)) = (&self.api_url, picture) {
            let url = format!("{}{}", api.trim_end_matches('/'), http_api::url::picture(id, picture.as_str()));
            shown.insert("media".to_owned(), json!([{ "type": "image", "url": url, "alt_text": name }]));
        }
    }
}

type Fields = Map<String, Value>;

fn object<const N: usize>(fields: [(&str, Value); N]) -> Fields {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns what can be ordered. The price may come with a former one.
fn sold(id: &str, name: &str, (price, former): (Money, Option<Money>), in_stock: bool) -> Fields {
    let status = if in_stock { "in_stock" } else { "out_of_stock" };
    let mut shown = object([
        ("id", id.into()),
        ("title", name.into()),
        ("price", json!(price)),
        ("condition", json!(["new"])),
        ("availability", json!({ "available": in_stock, "status": status })),
    ]);
    shown.extend(former.map(|former| ("list_price".to_owned(), json!(former))));
    shown
}
