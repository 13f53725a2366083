//! Quotes: prices of carts. A checkout with a quote charges the quoted price.
//!
//! A quote is sealed like a cursor and not stored. A request for a quote writes nothing, except the
//! count of its unknown codes, and that a promotion is used up. The client cannot read or change a
//! quote. A quote has the addresses, the shipping method, the codes, the lines and a digest of each
//! other part of the price. A checkout computes the price again. If everything is equal, the order
//! has exactly the quoted price. Otherwise the response names the lines and the parts that changed.

use http_api::contract::rules::{Text, exact_text};
use http_api::{Code, FieldError, Problem, Reason, Services};
use key_schema::address::PostalAddress;
use key_schema::cursor::{MAX_SEALED_BYTES, Scope};
use key_schema::id::{Born, MethodId, ProductId};
use key_schema::instant::Instant;
use key_schema::money::{Currency, Money};
use key_schema::order::{Charges, ShippingTax, TaxRounding};
use key_schema::pricing::{self, Rules};
use ring::digest::{self, SHA256};
use serde::{Deserialize, Serialize};

use crate::addresses::GivenAddresses;
use crate::lines::Sold;
use crate::price::{Place, Price, Terms};
use crate::promotions::{Candidate, Codes};

const LIFETIME_SECONDS: i64 = 15 * 60;
const DIGEST_BYTES: usize = 16;
pub const QUOTE_ID: Text = exact_text(1..=MAX_SEALED_BYTES);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    pub shipping_address: Option<PostalAddress>,
    pub billing_address: Option<PostalAddress>,
    pub method: Option<MethodId>,
    pub codes: Vec<String>,
    pub expires_at: Instant,
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
    /// Returns the quote of a price. `codes` are the codes that the customer entered.
    pub fn of(
        price: &Price<'_>,
        sold: &[Sold],
        addresses: Addresses,
        codes: &[String],
        now: Instant,
    ) -> Result<Self, Problem> {
        Ok(Self {
            method: price.chosen.as_ref().map(|offer| offer.method.id.clone()),
            expires_at: now.plus_seconds(LIFETIME_SECONDS),
            lines: sold.iter().map(QuotedLine::from).collect(),
            digests: Digests::of(price)?,
            shipping_address: addresses.0,
            billing_address: addresses.1,
            codes: codes.to_vec(),
        })
    }

    /// Returns whether two quotes have the same lines and the same price.
    #[must_use]
    pub fn has_price_of(&self, other: &Self) -> bool {
        (&self.lines, &self.method, &self.digests) == (&other.lines, &other.method, &other.digests)
    }

    /// Returns the scope of a quote. The scope has no caller, because staff may check out with the
    /// customer's quote.
    fn scope<'a>(parameters: &'a [(&'a str, &'a str); 1]) -> Scope<'a> {
        Scope { list: "quote", parameters, caller: "" }
    }

    pub async fn seal(&self, services: &Services, sealed_for: &str, now: Instant) -> Result<String, Problem> {
        let text = serde_json::to_string(self).map_err(Problem::internal)?;
        let parameters = [("customer", sealed_for)];
        services.cursors().await?.seal_text(&Self::scope(&parameters), &text, now).map_err(Problem::internal)
    }

    /// Opens the quote of a customer, or of a guest's cart (`sealed_for`).
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

/// The addresses of the shipment and of the invoice.
pub type Addresses = (Option<PostalAddress>, Option<PostalAddress>);

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
            place: quote.shipping_address.as_ref().map(Place::from),
            is_estimate: false,
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

pub async fn rules(services: &Services) -> Result<Rules, Problem> {
    Ok(Rules::from_items(services.table.query(&pricing::read()?).await?.items))
}
