//! What a session costs, what is missing, and what cannot be bought.
//!
//! The price is computed as for a quote, with as much as the agent has said so far. What stands in the
//! way becomes a [`Message`], because for an agent it is a result and not an error.

use std::fmt;

use http_api::{Code, Problem, Reason, Request};
use key_schema::address::{Country, PostalAddress};
use key_schema::agent::Agent;
use key_schema::checkout_session::{SessionDestination, SessionKind, SessionLine, Wish};
use key_schema::id::{CustomerId, MediaId, MethodId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Currency;
use key_schema::order::addresses::Guest;
use key_schema::order::open::Limits;
use key_schema::order::{Charges, PlacedOrder};
use key_schema::pricing::Rules;
use key_schema::product::{Product, Stock};
use key_schema::text::Email;
use ordering::lines::{self, Sold, WantedLine};
use ordering::price::{Place, Price, Terms};
use ordering::promotions::{self, Codes};
use ordering::quote::{self, Quote};

use crate::App;

/// The longest name of a guest, in bytes.
const MAX_NAME_BYTES: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The agent can resolve it with another request.
    Recoverable,
    /// Only the buyer can go on, in the shop.
    BuyerInput,
    /// There is no session.
    Unrecoverable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Error(Severity),
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    pub code: &'static str,
    /// The part of the session, as a JSONPath.
    pub path: Option<String>,
    pub content: String,
}

impl Message {
    pub fn error(code: &'static str, path: impl Into<String>, content: impl Into<String>) -> Self {
        let (path, content) = (Some(path.into()), content.into());
        Self { kind: Kind::Error(Severity::Recoverable), code, path, content }
    }

    pub fn warning(code: &'static str, path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { kind: Kind::Warning, ..Self::error(code, path, content) }
    }

    pub fn for_buyer(code: &'static str, content: impl Into<String>) -> Self {
        Self { kind: Kind::Error(Severity::BuyerInput), code, path: None, content: content.into() }
    }

    /// Says why there is no session.
    pub fn unrecoverable(code: &'static str, content: impl Into<String>) -> Self {
        Self { kind: Kind::Error(Severity::Unrecoverable), code, path: None, content: content.into() }
    }

    const fn is_error(&self) -> bool {
        matches!(self.kind, Kind::Error(_))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Incomplete,
    RequiresEscalation,
    ReadyForComplete,
    CompleteInProgress,
    Completed,
    Canceled,
}

impl Status {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::RequiresEscalation => "requires_escalation",
            Self::ReadyForComplete => "ready_for_complete",
            Self::CompleteInProgress => "complete_in_progress",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
        }
    }

    /// Returns the status of a session without an order.
    pub fn of(messages: &[Message]) -> Self {
        let is_for_buyer = |message: &Message| message.kind == Kind::Error(Severity::BuyerInput);
        if messages.iter().any(is_for_buyer) {
            Self::RequiresEscalation
        } else if messages.iter().any(Message::is_error) {
            Self::Incomplete
        } else {
            Self::ReadyForComplete
        }
    }
}

#[derive(Debug)]
pub struct Line {
    pub id: String,
    pub product_id: ProductId,
    pub name: String,
    pub thumbnail: Option<MediaId>,
    pub quantity: u64,
    pub unit_price: i64,
    /// The price of all pieces before discounts.
    pub amount: i64,
}

/// The parts of a total. `total` is `items` less `discount`, plus `shipping` and `tax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub items: i64,
    pub discount: i64,
    /// The price of shipping, if a method is chosen.
    pub shipping: Option<i64>,
    /// The tax that prices do not include.
    pub tax: i64,
    pub total: i64,
}

impl Totals {
    pub fn new(charges: &Charges, total: i64) -> Self {
        let Charges { items, discount, shipping, method, .. } = charges;
        let tax = total.saturating_sub(*items).saturating_add(*discount).saturating_sub(*shipping);
        Self { items: *items, discount: *discount, shipping: method.as_ref().map(|_| *shipping), tax, total }
    }
}

/// A shipping method that can send the goods.
#[derive(Debug)]
pub struct Offer {
    pub id: MethodId,
    pub name: String,
    /// The least and the largest number of days.
    pub days: (u64, u64),
    pub price: i64,
}

/// A promotion that reduces the price.
#[derive(Debug)]
pub struct Applied {
    pub code: Option<String>,
    pub name: String,
    pub amount: i64,
}

/// A session as it is now.
#[derive(Debug)]
pub struct Evaluation {
    pub lines: Vec<Line>,
    pub currency: Currency,
    pub totals: Totals,
    pub is_shipped: bool,
    /// Whether the goods are sent, or the place decides about taxes.
    pub needs_address: bool,
    /// The shipping methods for the chosen destination, cheapest first.
    pub offers: Vec<Offer>,
    pub method: Option<MethodId>,
    pub applied: Vec<Applied>,
    /// Whether the codes were compared with those of the shop.
    pub are_codes_checked: bool,
    pub messages: Vec<Message>,
    /// The price, if the order is not placed yet.
    pub quote: Option<Quote>,
    pub guest: Option<Guest>,
}

/// What is known before the price.
struct Facts<'a> {
    wish: &'a Wish,
    lines: Vec<&'a SessionLine>,
    sold: Vec<Sold>,
    currency: Currency,
    rules: Rules,
    limits: Limits,
    is_shipped: bool,
    needs_address: bool,
    address: Option<PostalAddress>,
    is_new: bool,
}

/// Returns the state of a session, or the messages why nothing of it can be bought. `is_new` tells that
/// the agent has just named the lines: then lines without stock are left out.
pub async fn evaluate(
    app: &App,
    request: &Request<'_>,
    agent: &Agent,
    kind: SessionKind,
    wish: &Wish,
    is_new: bool,
    now: Instant,
) -> Result<Result<Evaluation, Vec<Message>>, Problem> {
    let services = &app.shop.services;
    let wanted: Vec<WantedLine> = wanted(&wish.lines);
    let offered = lines::offered(services, &wanted);
    let (offered, rules, limits) = tokio::try_join!(offered, quote::rules(services), app.shop.limits())?;
    let (mut kept, mut messages) = (Vec::new(), Vec::new());
    for (line, (product, stock)) in wish.lines.iter().zip(offered) {
        match left_out(line, product, stock.as_ref(), is_new, kept.len()) {
            Ok((product, short)) => {
                kept.push((line, product));
                messages.extend(short);
            }
            Err(message) if is_new => messages.push(Message { kind: Kind::Warning, ..message }),
            Err(message) => messages.push(message),
        }
    }
    if kept.is_empty() {
        let gone = |message: Message| Message { path: None, ..Message::unrecoverable(message.code, message.content) };
        return Ok(Err(messages.into_iter().map(gone).collect()));
    }
    let lines: Vec<&SessionLine> = kept.iter().map(|(line, _)| *line).collect();
    let wanted = wanted_of(lines.iter().copied());
    let products = kept.into_iter().map(|(_, product)| Some(product));
    let (sold, total) = Sold::all(&wanted, products, "/line_items")?;
    let is_shipped = !rules.zones.is_empty() && sold.iter().any(|sold| sold.product.is_shippable());
    let needs_address = is_shipped || !rules.tax_rules.is_empty() || limits.shipping_address_required;
    let destination = chosen(wish);
    let (address, errors) = match destination {
        None => (None, Vec::new()),
        Some((at, destination)) => match address(request, wish, at, destination) {
            Ok(address) => (Some(address), Vec::new()),
            Err(errors) => (None, errors),
        },
    };
    let mut guest = None;
    if kind == SessionKind::Checkout {
        match (needs_address, destination) {
            (true, None) => {
                let path = "$.fulfillment.methods[0].selected_destination_id";
                messages.push(Message::error("missing", path, "The address to which the goods go is required."));
            }
            (true, Some(_)) => messages.extend(errors),
            (false, _) => {}
        }
        if app.shop.account.keys().await.is_err() {
            let content = "The shop takes no payments through agents. The buyer has to go on in the shop.";
            messages.push(Message::for_buyer("payment_unavailable", content));
        }
        if limits.guest_orders {
            match buyer(wish) {
                Ok(buyer) => guest = Some(buyer),
                Err(errors) => messages.extend(errors),
            }
        } else {
            let content = "Only customers with an account can order. The buyer has to sign in to the shop.";
            messages.push(Message::for_buyer("sign_in_required", content));
        }
    }
    let place = destination.and_then(|(_, destination)| destination.country.as_deref()?.parse().ok());
    let facts = Facts {
        wish,
        lines,
        sold,
        currency: total.currency,
        rules,
        limits,
        is_shipped,
        needs_address,
        address,
        is_new,
    };
    let evaluation = facts.price(app, agent, place.as_ref(), messages, now).await?;
    Ok(Ok(Evaluation { guest, ..evaluation }))
}

impl Facts<'_> {
    async fn price(
        &self,
        app: &App,
        agent: &Agent,
        country: Option<&Country>,
        mut messages: Vec<Message>,
        now: Instant,
    ) -> Result<Evaluation, Problem> {
        let Self { wish, sold, currency, rules, limits, .. } = self;
        let guests = CustomerId::guests_of(&agent.id);
        let region = chosen(wish).and_then(|(_, destination)| destination.region.as_deref());
        let mut place = country.map(|country| Place { country, region });
        let (mut codes, mut method) = (wish.codes.clone(), wish.method.as_ref());
        let mut are_codes_checked = true;
        // Each round leaves out a code, the method or the place.
        loop {
            let texts = Codes { texts: &codes, quoted: false };
            // Only a request that names the codes counts those that are unknown.
            let guesser = self.is_new.then_some(&guests);
            let usable = promotions::usable(&app.shop.services, &guests, rules, texts, guesser, now).await;
            let promotions = match usable {
                Ok(promotions) => promotions,
                Err(problem) => {
                    are_codes_checked &= problem.code() != Code::QuotaExceeded;
                    messages.extend(reject(wish, &mut codes, problem)?);
                    continue;
                }
            };
            let (rounding, shipping_tax) = (limits.tax_rounding, limits.shipping_tax);
            let promotions = &promotions;
            let terms =
                Terms { rules, place, is_estimate: true, method, rounding, shipping_tax, promotions, codes: texts };
            match Price::of(sold, *currency, terms) {
                Ok(price) => {
                    let quote = Quote::of(&price, sold, (self.address.clone(), None), &codes, now)?;
                    return Ok(Evaluation { are_codes_checked, ..self.summary(&price, messages, Some(quote)) });
                }
                Err(problem) if problem.code() == Code::ShippingUnavailable => {
                    if method.take().is_some() {
                        let path = "$.fulfillment.methods[0].groups[0].selected_option_id";
                        let content = "This option is not available. The cheapest one is selected.";
                        messages.push(Message::warning("option_unavailable", path, content));
                    } else {
                        let path = "$.fulfillment.methods[0].selected_destination_id";
                        let content = "The goods cannot be sent to this address.";
                        messages.push(Message::error("address_undeliverable", path, content));
                        place = None;
                    }
                }
                Err(problem) => messages.extend(reject(wish, &mut codes, problem)?),
            }
        }
    }

    fn summary(&self, price: &Price<'_>, messages: Vec<Message>, quote: Option<Quote>) -> Evaluation {
        let charges = price.charges();
        let line = |(line, sold): (&&SessionLine, &Sold)| Line {
            id: line.id.clone(),
            product_id: sold.product.id.clone(),
            name: sold.product.name.clone(),
            thumbnail: sold.product.thumbnail.clone(),
            quantity: sold.quantity,
            unit_price: sold.product.price.amount,
            amount: sold.total.amount,
        };
        let offer = |offer: &ordering::price::Offer<'_>| Offer {
            id: offer.method.id.clone(),
            name: offer.method.name.clone(),
            days: offer.method.days,
            price: offer.price,
        };
        Evaluation {
            lines: self.lines.iter().zip(&self.sold).map(line).collect(),
            currency: self.currency,
            totals: Totals::new(&charges, price.total().amount),
            is_shipped: self.is_shipped,
            needs_address: self.needs_address,
            offers: price.offers.iter().map(offer).collect(),
            method: charges.method.as_ref().map(|method| method.id.clone()),
            applied: applied(&charges),
            are_codes_checked: true,
            messages,
            quote,
            guest: None,
        }
    }
}

impl Evaluation {
    /// Returns the state of a session with an order. The order does not change, whatever the shop does.
    pub fn of_order(order: &PlacedOrder, wish: &Wish) -> Self {
        let charges = order.head.charges();
        let line = |line: &Stored<key_schema::order::OrderLine>| Line {
            id: line_id(wish, &line.product_id),
            product_id: line.product_id.clone(),
            name: line.name.clone(),
            thumbnail: line.thumbnail.clone(),
            quantity: line.quantity,
            unit_price: line.unit_price.amount,
            amount: line.unit_price.amount.saturating_mul(i64::try_from(line.quantity).unwrap_or(i64::MAX)),
        };
        let method = charges.method.as_ref();
        let offer = |method: &key_schema::order::ChosenMethod| Offer {
            id: method.id.clone(),
            name: method.name.clone(),
            days: method.days,
            price: charges.shipping,
        };
        Self {
            lines: order.lines.iter().map(line).collect(),
            currency: order.head.total.currency,
            totals: Totals::new(&charges, order.head.total.amount),
            is_shipped: method.is_some(),
            needs_address: method.is_some() || !wish.destinations.is_empty(),
            offers: method.map(offer).into_iter().collect(),
            method: method.map(|method| method.id.clone()),
            applied: applied(&charges),
            are_codes_checked: true,
            messages: Vec::new(),
            quote: None,
            guest: None,
        }
    }
}

/// Returns the agent's name of an order's line. After the session has expired, it is the product.
pub fn line_id(wish: &Wish, product: &ProductId) -> String {
    let named = wish.lines.iter().find(|line| line.product_id == *product);
    named.map_or_else(|| product.to_string(), |line| line.id.clone())
}

fn applied(charges: &Charges) -> Vec<Applied> {
    let of = |promotion: &key_schema::promotion::AppliedPromotion| Applied {
        code: promotion.code.clone(),
        name: promotion.name.clone(),
        amount: promotion.discount,
    };
    charges.promotions.iter().map(of).collect()
}

pub fn wanted(lines: &[SessionLine]) -> Vec<WantedLine> {
    wanted_of(lines)
}

fn wanted_of<'a>(lines: impl IntoIterator<Item = &'a SessionLine>) -> Vec<WantedLine> {
    let wanted = |(at, line): (usize, &SessionLine)| WantedLine {
        pointer: format!("/line_items/{at}"),
        product_id: line.product_id.clone(),
        quantity: line.quantity,
        total: None,
        discounts: Vec::new(),
    };
    lines.into_iter().enumerate().map(wanted).collect()
}

/// Returns the product of a line, with a message if it has too few pieces. `at` is the line's place among
/// those that are for sale. The error tells why the line is left out. A line of which nothing is in stock
/// is left out if the agent has just named it.
fn left_out(
    line: &SessionLine,
    product: Option<Stored<Product>>,
    stock: Option<&Stored<Stock>>,
    is_new: bool,
    at: usize,
) -> Result<(Stored<Product>, Option<Message>), Message> {
    let id = &line.product_id;
    let Some(product) = product.filter(|product| !product.retired && product.variants.is_none()) else {
        return Err(Message::error("item_unavailable", "$.line_items", format!("The item {id} is not sold.")));
    };
    let can_supply = |pieces| stock.is_some_and(|stock| stock.can_supply(pieces, &product.meta.born));
    if is_new && !can_supply(1) {
        return Err(Message::error("out_of_stock", "$.line_items", format!("The item {id} is out of stock.")));
    }
    let short = (!can_supply(line.quantity)).then(|| {
        let path = format!("$.line_items[{at}].quantity");
        Message::error("out_of_stock", path, format!("There are fewer pieces of {id} in stock."))
    });
    Ok((product, short))
}

/// Returns the chosen destination with its position.
pub fn chosen(wish: &Wish) -> Option<(usize, &SessionDestination)> {
    let id = wish.destination.as_ref()?;
    wish.destinations.iter().enumerate().find(|(_, destination)| destination.id == *id)
}

/// Joins a first and a last name.
fn full_name(first: Option<&str>, last: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = [first, last].into_iter().flatten().map(str::trim).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn buyer_name(wish: &Wish) -> Option<String> {
    let buyer = wish.buyer()?;
    full_name(buyer.first_name.as_deref(), buyer.last_name.as_deref())
}

fn buyer(wish: &Wish) -> Result<Guest, Vec<Message>> {
    let mut errors = Vec::new();
    let email = match wish.buyer().and_then(|buyer| buyer.email) {
        None => {
            errors.push(Message::error("missing", "$.buyer.email", "The buyer's email address is required."));
            None
        }
        Some(text) => match text.parse::<Email>() {
            Ok(email) => Some(email),
            Err(error) => {
                errors.push(Message::error("invalid", "$.buyer.email", format!("The address is invalid: it {error}.")));
                None
            }
        },
    };
    let destination = chosen(wish).map(|(_, destination)| destination);
    let name = buyer_name(wish)
        .or_else(|| destination.and_then(|place| full_name(place.first_name.as_deref(), place.last_name.as_deref())));
    let name = name.filter(|name| name.len() <= MAX_NAME_BYTES);
    if name.is_none() {
        errors.push(Message::error("missing", "$.buyer.first_name", "The buyer's name is required."));
    }
    match (email, name) {
        (Some(email), Some(name)) => Ok(Guest { email, name }),
        _ => Err(errors),
    }
}

/// Reads a destination as every address of a request is read, and says what is missing or invalid.
fn address(
    request: &Request<'_>,
    wish: &Wish,
    at: usize,
    destination: &SessionDestination,
) -> Result<PostalAddress, Vec<Message>> {
    let SessionDestination { first_name, last_name, line1, line2, city, region, postal_code, country, phone, .. } =
        destination;
    let name = full_name(first_name.as_deref(), last_name.as_deref()).or_else(|| buyer_name(wish));
    let mut fields = serde_json::Map::new();
    let phone = phone.clone().or_else(|| wish.buyer()?.phone);
    for (field, value) in [
        ("name", name.as_ref()),
        ("line1", line1.as_ref()),
        ("line2", line2.as_ref()),
        ("city", city.as_ref()),
        ("region", region.as_ref()),
        ("postal_code", postal_code.as_ref()),
        ("country", country.as_ref()),
        ("phone", phone.as_ref()),
    ] {
        if let Some(value) = value {
            fields.insert(field.to_owned(), value.clone().into());
        }
    }
    let text = serde_json::Value::Object(fields).to_string();
    request.document::<PostalAddress>(&text).map_err(|problem| {
        let error = |error: &http_api::FieldError| {
            let field = match error.pointer.as_str() {
                "/name" => "first_name",
                "/line1" => "street_address",
                "/line2" => "extended_address",
                "/city" => "address_locality",
                "/region" => "address_region",
                "/postal_code" => "postal_code",
                "/country" => "address_country",
                _ => "phone_number",
            };
            let code = if error.detail == "is missing" { "missing" } else { "invalid" };
            let path = format!("$.fulfillment.methods[0].destinations[{at}].{field}");
            Message::error(code, path, format!("{field} {}.", error.detail))
        };
        problem.field_errors().iter().map(error).collect()
    })
}

/// Leaves out the codes that a problem refuses, and returns the messages about them.
///
/// # Errors
/// The problem, if it is not about codes.
fn reject(wish: &Wish, codes: &mut Vec<String>, problem: Problem) -> Result<Vec<Message>, Problem> {
    let refused: Vec<(usize, Option<Reason>)> = match problem.code() {
        Code::PromotionUnknown | Code::PromotionExpired | Code::PromotionUsedUp | Code::PromotionNotApplicable => {
            let position = |error: &http_api::FieldError| error.pointer.strip_prefix("/codes/")?.parse().ok();
            problem.field_errors().iter().filter_map(|error| Some((position(error)?, error.reason))).collect()
        }
        // The agent's buyers have entered too many unknown codes today.
        Code::QuotaExceeded => (0..codes.len()).map(|at| (at, None)).collect(),
        _ => Vec::new(),
    };
    let mut messages = Vec::new();
    for (at, reason) in refused.iter().filter(|(at, _)| *at < codes.len()) {
        let code = codes.get(*at).map_or("", String::as_str);
        let place = wish.codes.iter().position(|known| known == code).unwrap_or(*at);
        let path = format!("$.discounts.codes[{place}]");
        messages.push(Message::warning(name_of(*reason), path, Refused { code, reason: *reason }.to_string()));
    }
    if messages.is_empty() {
        return Err(problem);
    }
    let mut at = 0;
    codes.retain(|_| {
        at += 1;
        !refused.iter().any(|(refused, _)| *refused == at - 1)
    });
    Ok(messages)
}

const fn name_of(reason: Option<Reason>) -> &'static str {
    match reason {
        Some(Reason::Expired | Reason::UsedUp) => "discount_code_expired",
        Some(Reason::NotCombinable | Reason::TooManyPromotions) => "discount_code_combination_disallowed",
        Some(Reason::AccountRequired) => "discount_code_user_not_logged_in",
        Some(Reason::TierTooLow | Reason::NotFirstOrder) => "discount_code_user_ineligible",
        _ => "discount_code_invalid",
    }
}

/// A code that does not reduce the price.
struct Refused<'a> {
    code: &'a str,
    reason: Option<Reason>,
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            None => "is not checked any more today, after too many unknown codes",
            Some(Reason::Unknown) => "is unknown",
            Some(Reason::Expired) => "has expired",
            Some(Reason::UsedUp) => "has reached its limit of uses",
            Some(Reason::NotYetValid) => "is not valid yet",
            Some(Reason::AccountRequired) => "is only for customers with an account",
            Some(Reason::NotCombinable | Reason::TooManyPromotions) => "cannot be combined with the other promotions",
            Some(Reason::MinimumNotReached) => "needs goods for a higher amount",
            Some(_) => "does not reduce the price of these goods",
        };
        write!(f, "The code {} {why}.", self.code)
    }
}
