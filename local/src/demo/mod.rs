//! `--demo`: fills a new shop with products, pictures, customers, orders and reviews.
//!
//! The content is in the files of `local/demo`. It is loaded through the API with a staff token, so
//! the shop has everything that the functions derive: search index, sales, ratings, mail, events.
//! The times of the orders are relative to now.

mod content;

use std::time::{Duration, Instant as Clock};

use futures::future::{FutureExt as _, LocalBoxFuture};
use futures::stream::{self, TryStreamExt as _};
use key_schema::instant::Instant;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use self::content::{Content, Customer, Guest, Order, Product, Status};
use crate::built_in::DEMO_PICTURES;
use crate::import::client::{Answer, Client};

/// Requests at the same time. A function has at most two processes by default, and the requests
/// concern several functions.
const CONCURRENCY: usize = 8;
const SECONDS_OF_DAY: f64 = 86_400.0;
/// By how much the clock is set back for an order that lapses at once. It is longer than the time in
/// which an order must be paid.
const LAPSE_SECONDS: i64 = 2 * 60 * 60;

const IF_NEW: &[(&str, &str)] = &[("if-none-match", "*")];

#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error("the content of the demo is damaged: {0}")]
    Content(#[from] serde_json::Error),
    #[error("the demo has no picture {0}")]
    NoPicture(String),
    #[error("{0}")]
    Client(#[from] reqwest::Error),
    #[error("{method} {path}: {answer}")]
    Refused {
        /// Method of the request.
        method: Method,
        /// Path of the request.
        path: String,
        /// Status, code and explanation of the response, or the error without a response.
        answer: String,
    },
    #[error("the system refuses the token of the demo, or has stopped")]
    Gone,
}

/// Says what the demo has loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    products: usize,
    customers: usize,
    orders: usize,
    took: Duration,
}

impl std::fmt::Display for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { products, customers, orders, took } = self;
        let seconds = took.as_secs_f64();
        write!(f, "The demo has {products} products, {customers} customers and {orders} orders, in {seconds:.1} s.")
    }
}

/// Fills the shop of the system at `base`. `token` is a staff token. Returns `None` if the shop has
/// products of the demo already.
pub(crate) async fn load(base: String, token: String) -> Result<Option<Loaded>, DemoError> {
    let begun = Clock::now();
    let content = Content::read()?;
    let loader = Loader { client: Client::new(base, token, String::new())?, now: Instant::now() };
    let is_loaded = tokio::select! {
        loaded = loader.load(&content) => loaded?,
        () = loader.client.unauthorized() => return Err(DemoError::Gone),
        () = loader.client.gone() => return Err(DemoError::Gone),
    };
    Ok(is_loaded.then(|| Loaded {
        products: content.products.len(),
        customers: content.customers.len(),
        orders: content.orders.len(),
        took: begun.elapsed(),
    }))
}

struct Loader {
    client: Client,
    now: Instant,
}

type Task<'a> = LocalBoxFuture<'a, Result<(), DemoError>>;

async fn all<'a>(tasks: impl IntoIterator<Item = Task<'a>>) -> Result<(), DemoError> {
    stream::iter(tasks.into_iter().map(Ok)).try_for_each_concurrent(CONCURRENCY, |task| task).await
}

impl Loader {
    async fn load(&self, content: &Content) -> Result<bool, DemoError> {
        if self.has_some(content).await? {
            return Ok(false);
        }
        let customers = content.customers.iter().map(|customer| self.customer(customer).boxed_local());
        futures::try_join!(self.products(content), self.rules(content), all(customers))?;
        self.lapsed(content).await?;

        let media = content.products.iter().flat_map(|product| self.media(product));
        let orders = content.orders.iter().enumerate().filter(|(_, order)| order.status != Status::Lapsed);
        let orders = orders.map(|(number, order)| self.order(number, order).boxed_local());
        let community = content.customers.iter().flat_map(|customer| self.community(customer));
        // Orders show the pictures of their products, so the pictures are first. They keep the processes
        // of one function busy, and the others do the rest.
        futures::try_join!(all(media), all(community))?;
        all(orders).await?;
        // Otherwise the unpaid order would lapse within a minute.
        let janitor = json!({ "grace_seconds": 0 });
        self.post("/_local/invoke/Janitor", &[], janitor).await?;
        Ok(true)
    }

    async fn has_some(&self, content: &Content) -> Result<bool, DemoError> {
        let Some(first) = content.products.first() else { return Ok(false) };
        let path = format!("/v1/products/{}", first.id);
        match self.client.get(&path).await {
            Ok(Answer { status: StatusCode::NOT_FOUND, .. }) => Ok(false),
            answer => done(Method::GET, &path, answer).map(|_| true),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Option<Value>,
    ) -> Result<Value, DemoError> {
        done(method.clone(), path, self.client.call(method, path, headers, body.as_ref()).await)
    }

    async fn post(&self, path: &str, headers: &[(&'static str, &str)], body: Value) -> Result<Value, DemoError> {
        self.send(Method::POST, path, headers, Some(body)).await
    }

    async fn put(&self, path: &str, headers: &[(&'static str, &str)], body: Value) -> Result<Value, DemoError> {
        self.send(Method::PUT, path, headers, Some(body)).await
    }

    /// Creates the categories, and then the products with their stock.
    async fn products(&self, content: &Content) -> Result<(), DemoError> {
        for category in &content.shop.categories {
            let body = json!({ "description": category.description });
            self.put(&format!("/v1/categories/{}", category.path), IF_NEW, body).await?;
        }
        let lines: String = content.products.iter().map(|product| format!("{}\n", body_of(product))).collect();
        let path = "/v1/products/import";
        let answer = self.client.post(path, "application/x-ndjson", lines, None).await;
        let report = done(Method::POST, path, answer)?;
        let refused = report
            .get("results")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .find(|line| text_of(line, "status") == "refused");
        if let Some(line) = refused {
            return Err(DemoError::Refused { method: Method::POST, path: path.into(), answer: line.to_string() });
        }
        // The list of a parent has all its variants, so they are created one after the other.
        let parents = content.products.iter().filter(|product| !product.variants.is_empty());
        all(parents.map(|parent| self.variants(parent).boxed_local())).await
    }

    async fn variants(&self, parent: &Product) -> Result<(), DemoError> {
        for variant in &parent.variants {
            let options: Vec<&str> = variant.options.values().map(String::as_str).collect();
            let mut body = body_of(parent);
            set(&mut body, "id", json!(variant.id));
            set(&mut body, "parent", json!(parent.id));
            set(&mut body, "options", json!(variant.options));
            set(&mut body, "name", json!(format!("{}, {}", parent.name, options.join(", "))));
            set(&mut body, "price", money(variant.price.unwrap_or(parent.price)));
            set(&mut body, "stock", json!(variant.stock));
            self.post("/v1/products", &[], body).await?;
        }
        Ok(())
    }

    /// Creates the rules of pricing one after the other, because each change reads all rules.
    async fn rules(&self, content: &Content) -> Result<(), DemoError> {
        for (id, zone) in &content.shop.zones {
            self.put(&format!("/v1/shipping/zones/{id}"), IF_NEW, zone.clone()).await?;
        }
        for (id, rule) in &content.shop.taxes {
            self.put(&format!("/v1/tax/rules/{id}"), IF_NEW, rule.clone()).await?;
        }
        for promotion in &content.shop.promotions {
            self.post("/v1/promotions", &[], promotion.clone()).await?;
        }
        Ok(())
    }

    async fn customer(&self, customer: &Customer) -> Result<(), DemoError> {
        let Customer { id, name, tier, line1, postal_code, city, country, .. } = customer;
        let place = json!({ "country": country, "city": city });
        let body =
            json!({ "id": id, "email": format!("{id}@example.com"), "username": id, "name": name, "place": place });
        self.post("/v1/customers", &[], body).await?;
        let address =
            json!({ "name": name, "line1": line1, "postal_code": postal_code, "city": city, "country": country });
        let path = format!("/v1/customers/{id}");
        let profile = self.put(&format!("{path}/addresses/home"), &[], address).await?;
        if let Some(tier) = tier {
            let tag = tag(&profile);
            self.send(Method::PATCH, &path, &[("if-match", &tag)], Some(json!({ "tier": tier }))).await?;
        }
        Ok(())
    }

    /// Places the orders that nobody pays. Their time to pay is over when they are placed, because the
    /// clock of the function is wrong for this moment.
    async fn lapsed(&self, content: &Content) -> Result<(), DemoError> {
        let clock = |seconds| json!({ "target": "function:Orders", "kind": "clock", "seconds": seconds });
        self.post("/_local/faults", &[], clock(-LAPSE_SECONDS)).await?;
        for (number, order) in content.orders.iter().enumerate().filter(|(_, order)| order.status == Status::Lapsed) {
            self.entered(number, order).await?;
        }
        self.post("/_local/faults", &[], clock(0)).await.map(|_| ())
    }

    fn media<'a>(&'a self, product: &'a Product) -> impl Iterator<Item = Task<'a>> {
        let own = self.pictures(&product.id, product.pictures.iter().map(|(name, alt)| (name.as_str(), alt.as_str())));
        let variants = product.variants.iter().map(|variant| {
            let alt = product.pictures.first().map_or("", |(_, alt)| alt);
            self.pictures(&variant.id, std::iter::once((variant.picture.as_str(), alt))).boxed_local()
        });
        let text = product.text.as_deref().map(|text| self.text(&product.id, text).boxed_local());
        std::iter::once(own.boxed_local()).chain(variants).chain(text)
    }

    async fn text(&self, product: &str, text: &str) -> Result<(), DemoError> {
        self.put(&format!("/v1/products/{product}/content"), IF_NEW, json!({ "text": text })).await.map(|_| ())
    }

    /// Adds pictures, the thumbnail first.
    async fn pictures<'a>(
        &self,
        product: &str,
        pictures: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), DemoError> {
        const TYPE: &str = "image/webp";
        for (name, alt) in pictures {
            let found = DEMO_PICTURES.iter().find(|(known, _)| *known == name);
            let (_, file) = found.ok_or_else(|| DemoError::NoPicture(name.to_owned()))?;
            let path = format!("/v1/products/{product}/pictures");
            let upload = self.post(&path, &[], json!({ "content_type": TYPE, "bytes": file.len() })).await?;
            let url = upload.pointer("/upload/url").and_then(Value::as_str).unwrap_or_default();
            done(Method::PUT, "the signed URL of a picture", self.client.upload(url, TYPE, file).await)?;
            self.put(&format!("{path}/{}", text_of(&upload, "id")), &[], json!({ "alt": alt })).await?;
        }
        Ok(())
    }

    async fn order(&self, number: usize, order: &Order) -> Result<(), DemoError> {
        let mut placed = match (&order.guest, order.cart) {
            (Some(guest), _) => self.of_guest(guest, order).await?,
            (None, true) => self.checked_out(number, order).await?,
            (None, false) => self.entered(number, order).await?,
        };
        let way = order.way();
        for (step, to) in way.iter().enumerate() {
            let mut change = json!({ "to": to });
            if *to == "shipped" {
                set(&mut change, "carrier", json!("Parcel Post"));
                set(&mut change, "tracking", json!(format!("PP{:09}DE", 473_118_204 + number * 7_919)));
            }
            if step + 1 == way.len() {
                set(&mut change, "message", json!(order.message));
                set(&mut change, "note", json!(order.note));
            }
            let tag = tag(&placed);
            let path = format!("/v1/orders/{}/status", text_of(&placed, "id"));
            placed = self.post(&path, &[("if-match", &tag)], change).await?;
        }
        Ok(())
    }

    /// Staff enter an order of the past.
    async fn entered(&self, number: usize, order: &Order) -> Result<Value, DemoError> {
        let lines: Vec<Value> =
            order.lines.iter().map(|(id, quantity)| json!({ "product_id": id, "quantity": quantity })).collect();
        #[allow(clippy::cast_possible_truncation)]
        let seconds = (order.days_ago.unwrap_or_default() * SECONDS_OF_DAY) as i64;
        let body = json!({
            "customer_id": order.customer,
            "placed_at": self.now.plus_seconds(-seconds).to_string(),
            "lapses": order.status == Status::Lapsed,
            "lines": lines,
            "shipping_address": "home",
        });
        self.post("/v1/orders", &[("idempotency-key", &format!("demo-{number}"))], body).await
    }

    /// A customer checks out a cart, at the price of a quote.
    async fn checked_out(&self, number: usize, order: &Order) -> Result<Value, DemoError> {
        let cart = format!("/v1/customers/{}/cart", order.customer.as_deref().unwrap_or_default());
        self.fill(&cart, &[], order).await?;
        let quote = json!({ "shipping_address": "home", "shipping_method": order.method, "codes": order.codes });
        let quote = self.post(&format!("{cart}/quote"), &[], quote).await?;
        let key = format!("demo-{number}");
        let body = json!({ "quote_id": quote.get("id"), "lapses": true });
        self.post(&format!("{cart}/checkout"), &[("idempotency-key", &key)], body).await
    }

    async fn of_guest(&self, guest: &Guest, order: &Order) -> Result<Value, DemoError> {
        let Guest { name, email, line1, postal_code, city, country } = guest;
        let cart = self.send(Method::POST, "/v1/carts", &[], None).await?;
        let token = [("cart-token", text_of(&cart, "token"))];
        let cart = format!("/v1/carts/{}", text_of(&cart, "id"));
        self.fill(&cart, &token, order).await?;
        let address =
            json!({ "name": name, "line1": line1, "postal_code": postal_code, "city": city, "country": country });
        let quote = self.post(&format!("{cart}/quote"), &token, json!({ "shipping_address": address })).await?;
        let body = json!({ "quote_id": quote.get("id"), "email": email, "name": name });
        self.post(&format!("{cart}/checkout"), &token, body).await
    }

    async fn fill(&self, cart: &str, headers: &[(&'static str, &str)], order: &Order) -> Result<(), DemoError> {
        for (id, quantity) in &order.lines {
            self.put(&format!("{cart}/items/{id}"), headers, json!({ "quantity": quantity })).await?;
        }
        Ok(())
    }

    /// What a customer does besides orders. The loader does it with its staff token.
    fn community<'a>(&'a self, customer: &'a Customer) -> impl Iterator<Item = Task<'a>> {
        let path = format!("/v1/customers/{}", customer.id);
        let like = |id: &String| self.click(format!("{path}/likes/{id}")).boxed_local();
        let follow = |id: &String| self.click(format!("{path}/following/{id}")).boxed_local();
        let mut tasks: Vec<Task<'a>> = customer.likes.iter().map(like).collect();
        tasks.extend(customer.follows.iter().map(follow));
        tasks.push(self.reviews(customer).boxed_local());
        tasks.push(self.questions(customer).boxed_local());
        tasks.into_iter()
    }

    async fn click(&self, path: String) -> Result<(), DemoError> {
        self.send(Method::PUT, &path, &[], None).await.map(|_| ())
    }

    async fn reviews(&self, customer: &Customer) -> Result<(), DemoError> {
        let first = customer.name.split(' ').next().unwrap_or_default();
        let author = format!("{first} from {}", customer.city);
        for (product, rating, title, text) in &customer.reviews {
            let body = json!({ "rating": rating, "display_name": author, "title": title, "text": text });
            self.put(&format!("/v1/products/{product}/reviews/{}", customer.id), IF_NEW, body).await?;
        }
        Ok(())
    }

    async fn questions(&self, customer: &Customer) -> Result<(), DemoError> {
        for (subject, text, answer) in &customer.questions {
            let path = format!("/v1/customers/{}/questions", customer.id);
            let question = self.post(&path, &[], json!({ "subject": subject, "text": text })).await?;
            if let Some(answer) = answer {
                let path = format!("/v1/questions/{}/answers", text_of(&question, "id"));
                self.post(&path, &[], json!({ "text": answer })).await?;
            }
        }
        Ok(())
    }
}

fn body_of(product: &Product) -> Value {
    json!({
        "id": product.id,
        "name": product.name,
        "brand": product.brand,
        "package_size": product.size,
        "category_path": product.category,
        "price": money(product.price),
        "compare_at": product.former.map(money),
        "summary": product.summary,
        "weight_grams": product.grams,
        "shippable": product.shippable,
        "tax_category": product.tax,
        "stock": product.stock,
    })
}

fn money(cents: u64) -> Value {
    json!({ "amount": cents, "currency": "EUR" })
}

fn set(body: &mut Value, member: &str, value: Value) {
    if let Some(object) = body.as_object_mut() {
        object.insert(member.to_owned(), value);
    }
}

fn tag(resource: &Value) -> String {
    format!("\"{}\"", resource.get("version").and_then(Value::as_u64).unwrap_or_default())
}

fn text_of<'a>(resource: &'a Value, member: &str) -> &'a str {
    resource.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the body of a successful response.
fn done(method: Method, path: &str, answer: Result<Answer, String>) -> Result<Value, DemoError> {
    let refused = |answer| DemoError::Refused { method, path: path.to_owned(), answer };
    match answer {
        Ok(answer) if answer.status.is_success() => Ok(answer.body),
        Ok(answer) => Err(refused(format!("{answer}: {}", text_of(&answer.body, "detail")))),
        Err(error) => Err(refused(error)),
    }
}

#[cfg(test)]
mod tests;
