use http_api::contract::Schema;
use http_api::contract::rules::{
    Component, List, Named, OneOf, QUANTITY, Text, component, integer, list, named, one_of, visible_text,
};
use http_api::url;
use key_schema::id::{MediaId, MethodId, ProductId, PromotionId};
use key_schema::money::{Currency, Money};
use key_schema::order::{Charges, ChosenMethod, LineDiscount, MAX_LINE_DISCOUNTS, OrderLine, TaxLine, TaxRate};
use key_schema::pricing::{BASIS_POINT, MAX_TAX_RULES, ShippingMethod};
use key_schema::promotion::{AppliedPromotion, MAX_APPLIED};
use ordering::lines::DISCOUNT_NAME;
use serde::Serialize;

const METHOD_NAME: Text = visible_text(1..=128);
const DELIVERY_DAYS: Component = component("DeliveryDays", "[2, 4]");
const THUMBNAIL: Component = component("Thumbnail", "null");
pub const DISCOUNTS: Named<List<DiscountView<'static>>> = named(
    "Discounts",
    "The promotions that reduce the price, in the order in which they were applied.",
    list(0..=MAX_APPLIED),
);
pub const TAX_LINES: Named<List<TaxLineView>> = named("TaxLines", "The tax of each rate.", list(0..=MAX_TAX_RULES));
pub const TAX_ROUNDING: Named<OneOf> = named(
    "TaxRounding",
    "Whether the tax is rounded for each line or once for each rate. The setting `orders.tax_rounding` decides. Half a \
     minor unit is rounded up.",
    one_of(&["line", "order"]),
);

/// The line as sold. Later changes of the product do not change it.
#[derive(Debug, Serialize, Schema)]
#[schema(name = "OrderLine")]
pub struct LineView<'a> {
    #[field(rule = integer(1..=u64::MAX), example = 1)]
    line: u64,
    #[serde(flatten)]
    priced: PricedLineView<'a>,
    /// The discounts that staff entered for the line. Their sum is `discount`. Absent if there are
    /// none.
    #[field(rule = list::<LineDiscountView<'_>>(0..=MAX_LINE_DISCOUNTS), left_out)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    discounts: Vec<LineDiscountView<'a>>,
}

#[derive(Debug, Serialize, Schema)]
pub struct PricedLineView<'a> {
    pub product_id: &'a ProductId,
    #[field(rule = component("ProductName", r#""ICE - CRUSHED/CUBED 22 LB""#))]
    pub name: &'a str,
    /// The path of the product's first picture at the time of the price. Null if it had none. The
    /// path redirects to the picture even if the product has left the catalogue, until staff remove
    /// the picture.
    #[field(rule = THUMBNAIL, not_null)]
    pub thumbnail: Option<String>,
    #[field(rule = QUANTITY, example = 2)]
    pub quantity: u64,
    pub unit_price: Money,
    #[field(example = {"amount": 0, "currency": "USD"})]
    pub discount: Money,
    /// The tax, whether the price includes it or not.
    #[field(example = {"amount": 19, "currency": "USD"})]
    pub tax: Money,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tax_rate: Option<RateView>,
    /// The amount that the customer pays for the line.
    #[field(example = {"amount": 258, "currency": "USD"})]
    pub total: Money,
}

impl<'a> From<&'a OrderLine> for LineView<'a> {
    fn from(line: &'a OrderLine) -> Self {
        let OrderLine {
            line,
            product_id,
            name,
            thumbnail,
            quantity,
            unit_price,
            total,
            discount,
            discounts,
            tax,
            tax_rate,
            ..
        } = line;
        let money = |amount| Money::new(amount, total.currency);
        let given = |given: &'a LineDiscount| LineDiscountView { name: &given.name, amount: money(given.amount) };
        let priced = PricedLineView {
            product_id,
            name,
            thumbnail: picture(product_id, thumbnail.as_ref()),
            quantity: *quantity,
            unit_price: *unit_price,
            discount: money(*discount),
            tax: money(*tax),
            tax_rate: tax_rate.map(RateView::from),
            total: *total,
        };
        Self { line: *line, priced, discounts: discounts.iter().map(given).collect() }
    }
}

/// Returns the path of a picture.
pub fn picture(product: &ProductId, id: Option<&MediaId>) -> Option<String> {
    id.map(|id| url::picture(product.as_str(), id.as_str()))
}

#[derive(Debug, Serialize, Schema)]
pub struct QuoteLineView<'a> {
    #[serde(flatten)]
    pub priced: PricedLineView<'a>,
    #[field(rule = component("Available", "true"))]
    pub available: bool,
}

/// The parts of a total. The total is `items` less `discount` plus `shipping`, and plus the tax that
/// prices do not include.
#[derive(Debug, Serialize, Schema)]
pub struct TotalsView {
    /// The price of all lines before discounts.
    #[field(example = {"amount": 258, "currency": "USD"})]
    items: Money,
    /// All discounts, including the discount of shipping.
    #[field(example = {"amount": 0, "currency": "USD"})]
    discount: Money,
    /// The price of the shipping method.
    #[field(example = {"amount": 500, "currency": "USD"})]
    shipping: Money,
    /// All taxes, whether prices include them or not.
    #[field(example = {"amount": 56, "currency": "USD"})]
    tax: Money,
    /// The amount that is charged.
    #[field(example = {"amount": 758, "currency": "USD"})]
    total: Money,
}

impl TotalsView {
    pub const fn new(charges: &Charges, total: Money) -> Self {
        let currency = total.currency;
        Self {
            items: Money::new(charges.items, currency),
            discount: Money::new(charges.discount, currency),
            shipping: Money::new(charges.shipping, currency),
            tax: Money::new(charges.tax, currency),
            total,
        }
    }
}

#[derive(Debug, Serialize, Schema)]
#[schema(name = "PricedMethod")]
pub struct MethodView<'a> {
    #[field(example = "post")]
    id: &'a MethodId,
    #[field(rule = METHOD_NAME, example = "Parcel post")]
    name: &'a str,
    #[field(rule = DELIVERY_DAYS)]
    days: (u64, u64),
    #[field(example = {"amount": 500, "currency": "USD"})]
    price: Money,
}

impl<'a> MethodView<'a> {
    pub fn offered(method: &'a ShippingMethod, price: Money) -> Self {
        Self { id: &method.id, name: &method.name, days: method.days, price }
    }
}

#[derive(Debug, Serialize, Schema)]
#[schema(name = "ChargedMethod")]
pub struct ShippingView<'a> {
    #[serde(flatten)]
    method: MethodView<'a>,
    /// The discount of free shipping.
    #[field(example = {"amount": 0, "currency": "USD"})]
    discount: Money,
    /// The tax, whether the price includes it or not.
    #[field(example = {"amount": 37, "currency": "USD"})]
    tax: Money,
    /// The tax of shipping for each rate. Empty if shipping is not taxed.
    #[field(rule = TAX_LINES, example = [{"rate_basis_points": 810, "further_millionths": 0, "included": true,
        "amount": {"amount": 500, "currency": "USD"}, "tax": {"amount": 37, "currency": "USD"}}])]
    tax_lines: Vec<TaxLineView>,
    /// The amount that the customer pays for shipping.
    #[field(example = {"amount": 500, "currency": "USD"})]
    total: Money,
}

impl<'a> ShippingView<'a> {
    pub fn of(charges: &'a Charges, currency: Currency) -> Option<Self> {
        let ChosenMethod { id, name, days } = charges.method.as_ref()?;
        let money = |amount| Money::new(amount, currency);
        Some(Self {
            method: MethodView { id, name, days: *days, price: money(charges.shipping) },
            discount: money(charges.shipping_discount),
            tax: money(charges.shipping_tax),
            tax_lines: TaxLineView::all(&charges.shipping_tax_lines, currency),
            total: money(charges.shipping_total),
        })
    }
}

#[derive(Debug, Serialize, Schema)]
pub struct LineDiscountView<'a> {
    #[field(rule = DISCOUNT_NAME, example = "regular customer")]
    name: &'a str,
    amount: Money,
}

/// The rate of the tax. Absent if there is no tax rule.
#[derive(Debug, Serialize, Schema)]
#[schema(name = "TaxRate")]
pub struct RateView {
    #[field(rule = component("RateBasisPoints", "810"))]
    rate_basis_points: u32,
    #[field(rule = component("FurtherMillionths", "0"))]
    further_millionths: u32,
    /// Whether the price includes the tax.
    included: bool,
}

impl From<TaxRate> for RateView {
    fn from(TaxRate { rate_millionths, included }: TaxRate) -> Self {
        let (rate_basis_points, further_millionths) = (rate_millionths / BASIS_POINT, rate_millionths % BASIS_POINT);
        Self { rate_basis_points, further_millionths, included }
    }
}

#[derive(Debug, Serialize, Schema)]
pub struct DiscountView<'a> {
    promotion_id: &'a PromotionId,
    #[field(rule = component("PromotionName", r#""Summer sale""#))]
    name: &'a str,
    /// The code that the customer entered, in the spelling of staff.
    #[field(example = "SUMMER")]
    code: Option<&'a str>,
    amount: Money,
}

impl<'a> DiscountView<'a> {
    pub fn all(charges: &'a Charges, currency: Currency) -> Vec<Self> {
        let view = |promotion: &'a AppliedPromotion| Self {
            promotion_id: &promotion.id,
            name: &promotion.name,
            code: promotion.code.as_deref(),
            amount: Money::new(promotion.discount, currency),
        };
        charges.promotions.iter().map(view).collect()
    }
}

#[derive(Debug, Serialize, Schema)]
pub struct TaxLineView {
    #[serde(flatten)]
    rate: RateView,
    /// The sum of the prices with this rate, after discounts.
    #[field(example = {"amount": 758, "currency": "USD"})]
    amount: Money,
    #[field(example = {"amount": 56, "currency": "USD"})]
    tax: Money,
}

impl TaxLineView {
    pub fn all(lines: &[TaxLine], currency: Currency) -> Vec<Self> {
        let view = |line: &TaxLine| Self {
            rate: line.rate.into(),
            amount: Money::new(line.amount, currency),
            tax: Money::new(line.tax, currency),
        };
        lines.iter().map(view).collect()
    }
}
