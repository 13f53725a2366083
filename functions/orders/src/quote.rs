use std::collections::BTreeMap;

use http_api::contract::rules::list;
use http_api::contract::{Body, Schema, route};
use http_api::{Problem, Request, Response};
use key_schema::cart::{self, CartLine};
use key_schema::id::{CustomerId, MethodId, ProductId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::order::TaxRounding;
use key_schema::pricing::MAX_METHODS;
use ordering::addresses::GivenAddresses;
use ordering::lines::{self, Sold};
use ordering::price::{Place, Price, Terms};
use ordering::promotions::{self, CODES, Codes};
use ordering::quote::{QUOTE_ID, Quote, rules};
use serde::Serialize;

use crate::App;
use crate::checkout::{cart_empty, lines_of};
use crate::view::{
    DISCOUNTS, DiscountView, MethodView, PricedLineView, QuoteLineView, RateView, TAX_LINES, TAX_ROUNDING, TaxLineView,
    TotalsView, picture,
};

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
    let (offered, rules) = tokio::try_join!(lines::offered(services, &wanted), rules(services))?;
    let (products, stocks): (Vec<_>, Vec<_>) = offered.into_iter().unzip();
    let (sold, items) = Sold::all(&wanted, products, "/items")?;
    let usable = promotions::usable(services, customer, &rules, codes, guesser, now).await?;
    let terms = Terms {
        rules: &rules,
        place: shipping_address.as_ref().map(Place::from),
        is_estimate: false,
        method: method.as_ref(),
        rounding: limits.tax_rounding,
        shipping_tax: limits.shipping_tax,
        promotions: &usable,
        codes,
    };
    let price = Price::of(&sold, items.currency, terms)?;
    let quote = Quote::of(&price, &sold, (shipping_address.clone(), billing_address), &texts, now)?;
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
        expires_at: quote.expires_at,
    };
    Ok(Response::ok(&view))
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
