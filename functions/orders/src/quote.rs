//! Quotes: prices of carts. A checkout with a quote charges the quoted price.
//!
//! A quote is sealed like a cursor and not stored. A request for a quote writes nothing, except the
//! count of its unknown codes. The client cannot read or change a quote. A quote has the addresses,
//! the shipping method, the codes and a digest of each part of the price. A checkout computes the
//! price again. If every digest is equal, the order has exactly the quoted price. Otherwise the
//! response names the parts that changed.

use http_api::fields::{parsed, text};
use http_api::{Code, Object, Problem, Request, Response, Services};
use key_schema::cart;
use key_schema::cursor::{MAX_SEALED_BYTES, Scope};
use key_schema::id::{CustomerId, MethodId};
use key_schema::instant::Instant;
use key_schema::money::{Currency, Money};
use key_schema::order::addresses::PostalAddress;
use key_schema::order::{Charges, TaxRounding};
use key_schema::pricing::{self, Rules};
use ring::digest::{self, SHA256};
use serde::{Deserialize, Serialize};

use crate::App;
use crate::addresses::{self, GivenAddresses};
use crate::checkout::lines_of;
use crate::lines::Sold;
use crate::price::{Price, Terms, tax_rate};
use crate::promotions::{self, Candidate, Codes};
use crate::view::{DiscountView, MethodView, PricedLineView, RateView, TaxLineView, TotalsView};

const LIFETIME_SECONDS: i64 = 15 * 60;
const DIGEST_BYTES: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    pub shipping_address: Option<PostalAddress>,
    pub billing_address: Option<PostalAddress>,
    pub method: Option<MethodId>,
    pub codes: Vec<String>,
    expires_at: Instant,
    digests: Digests,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Digests {
    items: String,
    prices: String,
    discounts: String,
    shipping: String,
    tax: String,
}

impl Digests {
    fn of(sold: &[Sold], price: &Price<'_>) -> Result<Self, Problem> {
        let taxes: Vec<_> = price.priced.lines.iter().map(|line| line.tax).collect();
        let discounts = price.priced.lines.iter().map(|line| line.discount).enumerate();
        let discounts: Vec<_> = discounts.filter(|(_, discount)| *discount > 0).collect();
        let Charges { shipping, method, promotions, tax, tax_lines, tax_rounding, .. } = &price.charges();
        // A product that was retired and created again is another product.
        let items = sold.iter().map(|sold| (&sold.product.id, &sold.product.meta.born, sold.quantity));
        let items: Vec<_> = items.collect();
        let prices: Vec<_> = sold.iter().map(|sold| sold.product.price).collect();
        Ok(Self {
            items: digest(&items)?,
            prices: digest(&prices)?,
            discounts: digest(&(promotions, discounts))?,
            shipping: digest(&(method, shipping))?,
            tax: digest(&(taxes, tax_lines, tax_rounding, tax))?,
        })
    }

    /// Returns the JSON Pointers to the parts of the quote that differ.
    fn changed(&self, now: &Self) -> Vec<&'static str> {
        let parts = [
            ("/items", self.items == now.items),
            ("/lines", self.prices == now.prices),
            ("/discounts", self.discounts == now.discounts),
            ("/shipping_methods", self.shipping == now.shipping),
            ("/tax_lines", self.tax == now.tax),
        ];
        parts.into_iter().filter_map(|(pointer, is_equal)| (!is_equal).then_some(pointer)).collect()
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

    fn seal(&self, services: &Services, customer: &CustomerId, now: Instant) -> Result<String, Problem> {
        let text = serde_json::to_string(self).map_err(Problem::internal)?;
        let parameters = [("customer", customer.as_str())];
        services.cursors.seal_text(&Self::scope(&parameters), &text, now).map_err(Problem::internal)
    }

    /// Opens the quote of a customer.
    ///
    /// # Errors
    /// 409 `quote_expired` for a quote that has expired, is altered, or is another customer's.
    pub fn open(services: &Services, customer: &CustomerId, sealed: &str, now: Instant) -> Result<Self, Problem> {
        let parameters = [("customer", customer.as_str())];
        let text = services.cursors.open_text(&Self::scope(&parameters), sealed, now);
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
}

impl Quoted {
    /// Computes the price of the sold lines, which must be the quoted price.
    ///
    /// # Errors
    /// - 409 `quote_changed` with a pointer to each part that differs. If there is no price any
    ///   more, the pointer is `/shipping_methods`.
    /// - 409 `promotion_not_applicable` if a code does not reduce the price any more.
    pub fn price(&self, sold: &[Sold], currency: Currency) -> Result<Price<'_>, Problem> {
        let Self { quote, rules, promotions, rounding } = self;
        let terms = Terms {
            rules,
            address: quote.shipping_address.as_ref(),
            method: quote.method.as_ref(),
            rounding: *rounding,
            promotions,
            codes: quote.codes(),
        };
        let price = Price::of(sold, currency, terms);
        let changed = match &price {
            Ok(price) => quote.digests.changed(&Digests::of(sold, price)?),
            Err(problem) if problem.code() == Code::PromotionNotApplicable => return price,
            Err(_) => vec!["/shipping_methods"],
        };
        match price {
            Ok(price) if changed.is_empty() => Ok(price),
            _ => Err(self::changed(changed)),
        }
    }
}

/// Returns the problem of a quote whose parts at these JSON Pointers differ from the present price.
pub fn changed(pointers: impl IntoIterator<Item = &'static str>) -> Problem {
    let problem = Problem::new(Code::QuoteChanged, "The price has changed since the quote. Get a new one.");
    pointers.into_iter().fold(problem, |problem, pointer| problem.error(pointer, "differs from the quote"))
}

pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.services;
    let customer_id: CustomerId = request.path("id")?;
    let owner = request.owner(&customer_id)?;
    let mut body = request.object()?;
    let addresses = addresses::read(&mut body);
    let method = body.optional("shipping_method", parsed::<MethodId>);
    let codes = promotions::read(&mut body);
    let (addresses, method, codes) = body.finish((addresses, method, codes))?;
    let texts = codes.unwrap_or_default();
    let codes = Codes { texts: &texts, quoted: false };
    let now = Instant::now();
    let cart = services.table.get(&cart::get(&customer_id)?).await?.filter(|cart| cart.expires_at > now);
    let cart = cart.filter(|cart| !cart.lines.is_empty());
    let cart = cart.ok_or_else(|| Problem::new(Code::CartEmpty, "The cart is empty."))?;
    let (shipping_address, billing_address) = addresses.of_profile(services, &customer_id).await?;
    let limits = app.limits().await?;
    let wanted = lines_of(&cart);
    let products = cart::products(wanted.iter().map(|line| &line.product_id))?;
    let products = async { Ok(services.table.batch_get(&products).await?) };
    let (products, rules) = tokio::try_join!(products, rules(services))?;
    let (sold, items) = Sold::all(&wanted, products, "/items")?;
    let guesser = (!owner.is_staff()).then_some(&customer_id);
    let usable = promotions::usable(services, &customer_id, &rules, codes, guesser, now).await?;
    let terms = Terms {
        rules: &rules,
        address: shipping_address.as_ref(),
        method: method.as_ref(),
        rounding: limits.tax_rounding,
        promotions: &usable,
        codes,
    };
    let price = Price::of(&sold, items.currency, terms)?;
    let expires_at = now.plus_seconds(LIFETIME_SECONDS);
    let quote = Quote {
        method: price.chosen.as_ref().map(|offer| offer.method.id.clone()),
        expires_at,
        digests: Digests::of(&sold, &price)?,
        shipping_address: shipping_address.clone(),
        billing_address,
        codes: texts.clone(),
    };
    let charges = price.charges();
    let money = |amount| Money::new(amount, price.currency);
    let lines = sold.iter().zip(&price.priced.lines).map(|(sold, priced)| PricedLineView {
        product_id: &sold.product.id,
        name: &sold.product.name,
        quantity: sold.quantity,
        unit_price: sold.product.price,
        discount: money(priced.discount),
        discounts: Vec::new(),
        tax: money(priced.tax),
        tax_rate: priced.rate.map(|rate| RateView::from(tax_rate(rate))),
        total: money(priced.total),
    });
    let offers = price.offers.iter().map(|offer| MethodView::offered(offer.method, money(offer.price)));
    let view = View {
        id: quote.seal(services, &customer_id, now)?,
        lines: lines.collect(),
        shipping_method: quote.method.as_ref(),
        shipping_methods: offers.collect(),
        discounts: DiscountView::all(&charges, price.currency),
        tax_lines: TaxLineView::all(&charges, price.currency),
        tax_rounding: charges.tax_rounding,
        totals: TotalsView::new(&charges, price.total()),
        expires_at,
    };
    Ok(Response::ok(&view))
}

pub async fn rules(services: &Services) -> Result<Rules, Problem> {
    Ok(Rules::from_items(services.table.query(&pricing::read()?).await?.items))
}

pub fn read(body: &mut Object<'_>) -> Option<Option<String>> {
    body.optional("quote_id", text(1..=MAX_SEALED_BYTES))
}

#[derive(Debug, Serialize)]
struct View<'a> {
    id: String,
    lines: Vec<PricedLineView<'a>>,
    shipping_method: Option<&'a MethodId>,
    shipping_methods: Vec<MethodView<'a>>,
    discounts: Vec<DiscountView<'a>>,
    tax_lines: Vec<TaxLineView>,
    tax_rounding: TaxRounding,
    totals: TotalsView,
    expires_at: Instant,
}
