//! Quotes: prices of carts. A checkout with a quote charges the quoted price.
//!
//! A quote is sealed like a cursor and not stored. A request for a quote writes nothing, except the
//! count of its unknown codes, and that a promotion is used up. The client cannot read or change a
//! quote. A quote has the addresses, the shipping method, the codes, the lines and a digest of each
//! other part of the price. A checkout computes the price again. If everything is equal, the order
//! has exactly the quoted price. Otherwise the response names the lines and the parts that changed.

use std::collections::BTreeMap;

use http_api::contract::rules::{Text, exact_text, list};
use http_api::contract::{Body, Schema, route};
use http_api::{Code, FieldError, Problem, Reason, Request, Response, Services};
use key_schema::address::PostalAddress;
use key_schema::cart::{self, CartLine};
use key_schema::cursor::{MAX_SEALED_BYTES, Scope};
use key_schema::id::{Born, CustomerId, MethodId, ProductId};
use key_schema::instant::Instant;
use key_schema::money::{Currency, Money};
use key_schema::order::{Charges, ShippingTax, TaxRounding};
use key_schema::pricing::{self, MAX_METHODS, Rules};
use ring::digest::{self, SHA256};
use serde::{Deserialize, Serialize};
use workflows::stock;

use crate::App;
use crate::addresses::GivenAddresses;
use crate::checkout::{cart_empty, lines_of};
use crate::lines::{self, Sold};
use crate::place::workflow_failed;
use crate::price::{Price, Terms};
use crate::promotions::{self, CODES, Candidate, Codes};
use crate::view::{
    DISCOUNTS, DiscountView, MethodView, PricedLineView, QuoteLineView, RateView, TAX_LINES, TAX_ROUNDING, TaxLineView,
    TotalsView, picture,
};

const LIFETIME_SECONDS: i64 = 15 * 60;
const DIGEST_BYTES: usize = 16;
pub const QUOTE_ID: Text = exact_text(1..=MAX_SEALED_BYTES);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    pub shipping_address: Option<PostalAddress>,
    pub billing_address: Option<PostalAddress>,
    pub method: Option<MethodId>,
    pub codes: Vec<String>,
    expires_at: Instant,
    lines: Vec<QuotedLine>,
    digests: Digests,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct QuotedLine {
    product_id: ProductId,
    /// A product that was retired and created again is another product.
    born: Born,
    quantity: u64,
    unit_price: Money,
}

impl From<&Sold> for QuotedLine {
    fn from(sold: &Sold) -> Self {
        Self {
            product_id: sold.product.id.clone(),
            born: sold.product.meta.born.clone(),
            quantity: sold.quantity,
            unit_price: sold.product.price,
        }
    }
}

impl QuotedLine {
    /// Returns the differences from the line of the same product in the quote. `at` is the line's
    /// position in the cart.
    fn changes(&self, at: usize, quoted: Option<&Self>) -> Vec<FieldError> {
        let error = |field: &str, reason, detail: String| {
            let error = FieldError::new(format!("/items/{at}{field}"), detail).product(&self.product_id).reason(reason);
            error.prices(quoted.map(|quoted| quoted.unit_price), Some(self.unit_price))
        };
        let Some(quoted) = quoted else { return vec![error("", Reason::LineAdded, "is not in the quote".to_owned())] };
        let mut changes = Vec::new();
        if self.born != quoted.born {
            let detail = "was retired and created again since the quote".to_owned();
            changes.push(error("/product_id", Reason::ProductReplaced, detail));
        }
        if self.quantity != quoted.quantity {
            let detail = format!("is {}, but {} in the quote", self.quantity, quoted.quantity);
            changes.push(error("/quantity", Reason::QuantityChanged, detail));
        }
        if self.unit_price != quoted.unit_price {
            let (new, old) = (self.unit_price, quoted.unit_price);
            let detail = format!(
                "is {} {}, but {} {} in the quote (minor units)",
                new.amount, new.currency, old.amount, old.currency
            );
            changes.push(error("/unit_price", Reason::PriceChanged, detail));
        }
        changes
    }
}

/// Returns the differences between the lines of a quote and of the cart.
fn changed_lines(quoted: &[QuotedLine], sold: &[Sold]) -> Vec<FieldError> {
    let lines: Vec<_> = sold.iter().map(QuotedLine::from).collect();
    let mut changes = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        changes.extend(line.changes(at, quoted.iter().find(|quoted| quoted.product_id == line.product_id)));
    }
    for line in quoted.iter().filter(|quoted| !lines.iter().any(|line| line.product_id == quoted.product_id)) {
        let error = FieldError::new("/items", "no longer has a line of the quote").product(&line.product_id);
        changes.push(error.reason(Reason::LineRemoved).prices(Some(line.unit_price), None));
    }
    if changes.is_empty() && lines != quoted {
        changes.push(FieldError::new("/items", "has another sequence than the quote").reason(Reason::SequenceChanged));
    }
    changes
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Digests {
    discounts: String,
    shipping: String,
    tax: String,
}

impl Digests {
    fn of(price: &Price<'_>) -> Result<Self, Problem> {
        let taxes: Vec<_> = price.priced.lines.iter().map(|line| line.tax).collect();
        let discounts = price.priced.lines.iter().map(|line| line.discount).enumerate();
        let discounts: Vec<_> = discounts.filter(|(_, discount)| *discount > 0).collect();
        let Charges { shipping, method, promotions, tax, tax_lines, tax_rounding, .. } = &price.charges();
        Ok(Self {
            discounts: digest(&(promotions, discounts))?,
            shipping: digest(&(method, shipping))?,
            tax: digest(&(taxes, tax_lines, tax_rounding, tax))?,
        })
    }

    /// Returns the parts of the quote that differ.
    fn changes(&self, now: &Self) -> impl Iterator<Item = FieldError> {
        let parts = [
            ("/discounts", self.discounts == now.discounts),
            (SHIPPING_METHODS, self.shipping == now.shipping),
            ("/tax_lines", self.tax == now.tax),
        ];
        parts.into_iter().filter(|(_, is_equal)| !is_equal).map(|(pointer, _)| differs(pointer))
    }
}

fn digest(value: &impl Serialize) -> Result<String, Problem> {
    let json = serde_json::to_vec(value).map_err(Problem::internal)?;
    Ok(digest::digest(&SHA256, &json).as_ref().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect())
}

impl Quote {
    /// Returns the scope of a quote. The scope has no caller, because staff may check out with the
    /// customer's quote.
    fn scope<'a>(parameters: &'a [(&'a str, &'a str); 1]) -> Scope<'a> {
        Scope { list: "quote", parameters, caller: "" }
    }

    async fn seal(&self, services: &Services, sealed_for: &str, now: Instant) -> Result<String, Problem> {
        let text = serde_json::to_string(self).map_err(Problem::internal)?;
        let parameters = [("customer", sealed_for)];
        services.cursors().await?.seal_text(&Self::scope(&parameters), &text, now).map_err(Problem::internal)
    }

    /// Opens the quote of a customer, or of a guest's cart ([`Quoter::sealed_for`]).
    ///
    /// # Errors
    /// 409 `quote_expired` for a quote that has expired, is altered, or is another customer's.
    pub async fn open(services: &Services, sealed_for: &str, sealed: &str, now: Instant) -> Result<Self, Problem> {
        let parameters = [("customer", sealed_for)];
        let text = services.cursors().await?.open_text(&Self::scope(&parameters), sealed, now);
        let quote = text.ok().and_then(|text| serde_json::from_str::<Self>(&text).ok());
        quote.filter(|quote| quote.expires_at > now).ok_or_else(|| {
            Problem::new(Code::QuoteExpired, "This is not a quote of the customer, or it has expired. Get a new one.")
                .error("/quote_id", "is not a valid quote of this customer")
        })
    }

    pub fn codes(&self) -> Codes<'_> {
        Codes { texts: &self.codes, quoted: true }
    }

    pub fn addresses(&self) -> GivenAddresses {
        GivenAddresses::whole(self.shipping_address.clone(), self.billing_address.clone())
    }
}

/// A quote with the current data that determines its price.
#[derive(Debug)]
pub struct Quoted {
    pub quote: Quote,
    pub rules: Rules,
    pub promotions: Vec<Candidate>,
    pub rounding: TaxRounding,
    pub shipping_tax: ShippingTax,
}

impl Quoted {
    /// Computes the price of the sold lines, which must be the quoted price.
    ///
    /// # Errors
    /// - 409 `quote_changed` with a pointer to each line and each part that differs. If there is no
    ///   price any more, the part is `/shipping_methods`.
    /// - 409 `promotion_not_applicable` if a code does not reduce the price any more.
    pub fn price(&self, sold: &[Sold], currency: Currency) -> Result<Price<'_>, Problem> {
        let Self { quote, rules, promotions, rounding, shipping_tax } = self;
        let terms = Terms {
            rules,
            address: quote.shipping_address.as_ref(),
            method: quote.method.as_ref(),
            rounding: *rounding,
            shipping_tax: *shipping_tax,
            promotions,
            codes: quote.codes(),
        };
        let mut changes = changed_lines(&quote.lines, sold);
        match Price::of(sold, currency, terms) {
            Ok(price) => {
                changes.extend(quote.digests.changes(&Digests::of(&price)?));
                if changes.is_empty() {
                    return Ok(price);
                }
            }
            Err(problem) if problem.code() == Code::PromotionNotApplicable => return Err(problem),
            Err(_) => changes.push(differs(SHIPPING_METHODS)),
        }
        Err(changed(changes))
    }
}

const SHIPPING_METHODS: &str = "/shipping_methods";

/// Returns the error of a part of the quote, at this JSON Pointer, that differs from the present
/// price.
pub fn differs(pointer: &'static str) -> FieldError {
    FieldError::new(pointer, "differs from the quote")
}

/// Returns the problem of a quote that differs from the present price.
pub fn changed(changes: impl IntoIterator<Item = FieldError>) -> Problem {
    Problem::new(Code::QuoteChanged, "The price has changed since the quote. Get a new one.").errors(changes)
}

#[derive(Body)]
#[body(example = {})]
pub struct QuoteRequest {
    #[field(flatten)]
    pub addresses: GivenAddresses,
    /// The id of the wanted method.
    #[field(example = "post")]
    pub shipping_method: Option<MethodId>,
    /// The codes of promotions, in any letter case.
    #[field(rule = CODES, default, example = ["SUMMER"])]
    pub codes: Vec<String>,
}

/// Get the price of the cart
///
/// Returns the price of the cart with shipping and tax, and the shipping methods for the address.
/// Without a `shipping_method` the cheapest method is chosen. The quote is valid for 15 minutes. A
/// checkout with its `id` charges exactly this price. Nothing is stored or reserved.
///
/// The address is required if the shop has tax rules, or shipping zones for goods that are shipped.
/// If nothing is shipped, `shipping_method` has no effect.
///
/// Promotions without a code are applied if their conditions hold. Each code in `codes` must reduce
/// the price with the chosen method, or the request is refused with `promotion_not_applicable`. So a
/// code for free shipping is refused with a method that is free already. Leave the code out, or
/// choose a method that costs something. A customer can enter about 50 unknown codes a day.
///
/// If exclusive promotions alone reduce the price, only the one with the highest priority is
/// applied. Otherwise the other promotions are applied one after the other, by priority, at most 5.
/// Each one reduces the prices that result from the earlier ones. A promotion that reduces nothing is
/// left out and does not count. Free shipping reduces nothing if the chosen method costs nothing for
/// the goods after discounts. The discount of a percentage is computed for all its goods together,
/// and rounded half up. The discount is spread over the lines in proportion to their prices, by the
/// method of the largest remainder.
#[route(POST "/v1/customers/{id}/cart/quote", id = "quoteCart", who = owner, task = "cart", path(id: CustomerId),
    body = QuoteRequest, answers(200 = QuoteView<'_> "The quote"),
    refuses(
        shipping_unavailable = "no shipping method can send the goods to the address, or the wanted method cannot",
        promotion_unknown = "with an entry in `errors` for each code",
        promotion_expired = "with an entry in `errors` for the code",
        promotion_used_up = "with an entry in `errors` for the code",
        promotion_not_applicable = "with an entry in `errors` for each code and the reason",
        has_variants = "with an entry in `errors` for each line with a parent of variants",
        invalid_body = "also if a required address is missing",
        cart_empty,
        unknown_product = "with an entry in `errors` for each line",
        quota_exceeded = "too many unknown codes on this day",
    ))]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let customer_id: CustomerId = request.path("id")?;
    let owner = request.owner(&customer_id)?;
    let wanted: QuoteRequest = request.body()?;
    let now = Instant::now();
    let cart = app.services.table.get(&cart::get(&customer_id)?).await?.filter(|cart| cart.expires_at > now);
    let cart = cart.ok_or_else(cart_empty)?;
    let guesser = (!owner.is_staff()).then_some(&customer_id);
    let quoter = Quoter { customer: &customer_id, guesser, sealed_for: customer_id.as_str() };
    answer(app, wanted, &cart.lines, quoter, now).await
}

/// Who gets a quote.
#[derive(Debug, Clone, Copy)]
pub struct Quoter<'a> {
    /// The customer, or all guests.
    pub customer: &'a CustomerId,
    /// As in [`promotions::usable`].
    pub guesser: Option<&'a CustomerId>,
    /// The id of the customer, or of the guest's cart. Only its checkout can open the quote.
    pub sealed_for: &'a str,
}

pub async fn answer(
    app: &App,
    wanted: QuoteRequest,
    lines: &BTreeMap<ProductId, CartLine>,
    quoter: Quoter<'_>,
    now: Instant,
) -> Result<Response, Problem> {
    let services = &app.services;
    let QuoteRequest { addresses, shipping_method: method, codes: texts } = wanted;
    let codes = Codes { texts: &texts, quoted: false };
    let Quoter { customer, guesser, sealed_for } = quoter;
    if lines.is_empty() {
        return Err(cart_empty());
    }
    let (shipping_address, billing_address) = addresses.of_profile(services, customer).await?;
    let limits = app.limits().await?;
    let wanted = lines_of(lines);
    let products = cart::products(wanted.iter().map(|line| &line.product_id))?;
    let products = lines::read_products(services, &products, &wanted, 2);
    let (products, rules) = tokio::try_join!(products, rules(services))?;
    let (products, mut stocks): (Vec<_>, Vec<_>) = cart::with_stocks(products).unzip();
    let (sold, items) = Sold::all(&wanted, products, "/items")?;
    for (sold, stock) in sold.iter().zip(&mut stocks) {
        // A missing stock may not be moved yet.
        let first = match stock.take() {
            None => stock::seen::<()>(&services.table, &sold.product.id).await.map_err(workflow_failed)?,
            first => first,
        };
        if let Some(first) = first {
            let whole = stock::wanted(&services.table, &sold.product, first, sold.quantity).await;
            *stock = Some(whole.map_err(workflow_failed)?);
        }
    }
    let usable = promotions::usable(services, customer, &rules, codes, guesser, now).await?;
    let terms = Terms {
        rules: &rules,
        address: shipping_address.as_ref(),
        method: method.as_ref(),
        rounding: limits.tax_rounding,
        shipping_tax: limits.shipping_tax,
        promotions: &usable,
        codes,
    };
    let price = Price::of(&sold, items.currency, terms)?;
    let expires_at = now.plus_seconds(LIFETIME_SECONDS);
    let quote = Quote {
        method: price.chosen.as_ref().map(|offer| offer.method.id.clone()),
        expires_at,
        lines: sold.iter().map(QuotedLine::from).collect(),
        digests: Digests::of(&price)?,
        shipping_address: shipping_address.clone(),
        billing_address,
        codes: texts.clone(),
    };
    let charges = price.charges();
    let money = |amount| Money::new(amount, price.currency);
    let lines = sold.iter().zip(&price.priced.lines).zip(&stocks).map(|((sold, priced), stock)| QuoteLineView {
        priced: PricedLineView {
            product_id: &sold.product.id,
            name: &sold.product.name,
            thumbnail: picture(&sold.product.id, sold.product.thumbnail.as_ref()),
            quantity: sold.quantity,
            unit_price: sold.product.price,
            discount: money(priced.discount),
            tax: money(priced.tax),
            tax_rate: priced.rate.map(RateView::from),
            total: money(priced.total),
        },
        available: stock.as_ref().is_some_and(|stock| stock.can_supply(sold.quantity, &sold.product.meta.born)),
    });
    let offers = price.offers.iter().map(|offer| MethodView::offered(offer.method, money(offer.price)));
    let view = QuoteView {
        id: quote.seal(services, sealed_for, now).await?,
        lines: lines.collect(),
        shipping_method: quote.method.as_ref(),
        shipping_methods: offers.collect(),
        discounts: DiscountView::all(&charges, price.currency),
        tax_lines: TaxLineView::all(&charges.tax_lines, price.currency),
        tax_rounding: charges.tax_rounding,
        totals: TotalsView::new(&charges, price.total()),
        expires_at,
    };
    Ok(Response::ok(&view))
}

pub async fn rules(services: &Services) -> Result<Rules, Problem> {
    Ok(Rules::from_items(services.table.query(&pricing::read()?).await?.items))
}

#[derive(Serialize, Schema)]
pub struct QuoteView<'a> {
    /// The quote for the checkout. Its content is sealed.
    #[field(rule = QUOTE_ID, example = "AQQyMDI2kq2dWc0f3n1bq8Zk")]
    id: String,
    /// The lines, in the sequence in which the customer added them.
    #[field(rule = list::<QuoteLineView<'_>>(0..=cart::MAX_LINES))]
    lines: Vec<QuoteLineView<'a>>,
    /// The id of the chosen method, or `null` if nothing is shipped.
    #[field(example = "post")]
    shipping_method: Option<&'a MethodId>,
    /// The methods that send the goods to the address, cheapest first. Of two methods with the same
    /// price, the one with fewer days comes first. The prices are those before a discount of free
    /// shipping.
    #[field(rule = list::<MethodView<'_>>(0..=MAX_METHODS))]
    shipping_methods: Vec<MethodView<'a>>,
    #[field(rule = DISCOUNTS, example = [])]
    discounts: Vec<DiscountView<'a>>,
    #[field(rule = TAX_LINES)]
    tax_lines: Vec<TaxLineView>,
    #[field(rule = TAX_ROUNDING)]
    tax_rounding: TaxRounding,
    totals: TotalsView,
    #[field(example = "2026-11-20T12:15:00.000Z")]
    expires_at: Instant,
}
