use http_api::url;
use key_schema::id::{MediaId, MethodId, ProductId, PromotionId};
use key_schema::money::{Currency, Money};
use key_schema::order::{Charges, ChosenMethod, LineDiscount, OrderLine, TaxLine, TaxRate};
use key_schema::pricing::{BASIS_POINT, ShippingMethod};
use key_schema::promotion::AppliedPromotion;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct LineView<'a> {
    line: u64,
    #[serde(flatten)]
    priced: PricedLineView<'a>,
}

#[derive(Debug, Serialize)]
pub struct PricedLineView<'a> {
    pub product_id: &'a ProductId,
    pub name: &'a str,
    pub thumbnail: Option<String>,
    pub quantity: u64,
    pub unit_price: Money,
    pub discount: Money,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub discounts: Vec<LineDiscountView<'a>>,
    /// The tax, whether the price includes it or not.
    pub tax: Money,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tax_rate: Option<RateView>,
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
            discounts: discounts.iter().map(given).collect(),
            tax: money(*tax),
            tax_rate: tax_rate.map(RateView::from),
            total: *total,
        };
        Self { line: *line, priced }
    }
}

/// Returns the path of a picture.
pub fn picture(product: &ProductId, id: Option<&MediaId>) -> Option<String> {
    id.map(|id| url::picture(product.as_str(), id.as_str()))
}

/// A line of a quote. The availability may change until the checkout, and is no part of the quote.
#[derive(Debug, Serialize)]
pub struct QuoteLineView<'a> {
    #[serde(flatten)]
    pub priced: PricedLineView<'a>,
    pub available: bool,
}

#[derive(Debug, Serialize)]
pub struct TotalsView {
    items: Money,
    discount: Money,
    shipping: Money,
    tax: Money,
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

#[derive(Debug, Serialize)]
pub struct MethodView<'a> {
    id: &'a MethodId,
    name: &'a str,
    days: (u64, u64),
    price: Money,
}

impl<'a> MethodView<'a> {
    pub fn offered(method: &'a ShippingMethod, price: Money) -> Self {
        Self { id: &method.id, name: &method.name, days: method.days, price }
    }
}

#[derive(Debug, Serialize)]
pub struct ShippingView<'a> {
    #[serde(flatten)]
    method: MethodView<'a>,
    discount: Money,
    tax: Money,
    tax_lines: Vec<TaxLineView>,
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

#[derive(Debug, Serialize)]
pub struct LineDiscountView<'a> {
    name: &'a str,
    amount: Money,
}

#[derive(Debug, Serialize)]
pub struct RateView {
    rate_basis_points: u32,
    further_millionths: u32,
    included: bool,
}

impl From<TaxRate> for RateView {
    fn from(TaxRate { rate_millionths, included }: TaxRate) -> Self {
        let (rate_basis_points, further_millionths) = (rate_millionths / BASIS_POINT, rate_millionths % BASIS_POINT);
        Self { rate_basis_points, further_millionths, included }
    }
}

#[derive(Debug, Serialize)]
pub struct DiscountView<'a> {
    promotion_id: &'a PromotionId,
    name: &'a str,
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

#[derive(Debug, Serialize)]
pub struct TaxLineView {
    #[serde(flatten)]
    rate: RateView,
    amount: Money,
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
