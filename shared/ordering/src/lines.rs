use std::borrow::Cow;

use http_api::contract::rules::{MOVED_MONEY, PRICE, QUANTITY, Text, list, visible_text};
use http_api::contract::{Body, Context, Node, Rule, RuleSchema, Schemas};
use http_api::json::Value;
use http_api::{Code, FieldError, Invalid, Problem, Reason, Services};
use key_schema::cart;
use key_schema::id::{OrderId, ProductId};
use key_schema::item::{FromItem, Stored};
use key_schema::money::{Money, MoneyError};
use key_schema::order::{self, LineDiscount, MAX_LINE_DISCOUNTS, MAX_LINES, MAX_TOTAL, OrderLine};
use key_schema::product::{Picks, Product, Stock};
use key_schema::request::BatchGet;
use table::TableError;
use workflows::stock;

use crate::place::workflow_failed;
use crate::refusal::{amount_refused, parents_of_variants, unknown_products};

/// The product of a line, and its stock.
pub type Offered = (Option<Stored<Product>>, Option<Stored<Stock>>);

/// The maximum number of lines that are read. A longer array gets a single error about its length.
const MAX_LINES_READ: usize = 10_000;
pub const DISCOUNT_NAME: Text = visible_text(1..=64);

#[derive(Debug)]
pub struct WantedLine {
    /// The JSON Pointer to the line, in the request's body or in the cart.
    pub pointer: String,
    pub product_id: ProductId,
    pub quantity: u64,
    /// Staff only: the amount paid for the line.
    pub total: Option<Money>,
    /// Staff only: the discounts that staff have already subtracted from `total`.
    pub discounts: Vec<LineDiscount>,
}

#[derive(Body)]
#[body(check(total, discounts) = fit_together)]
pub struct NewOrderLine {
    product_id: ProductId,
    #[field(rule = QUANTITY, example = 2)]
    quantity: u64,
    /// Staff only: the amount paid for the line. The default is the price times the quantity.
    #[field(rule = PRICE, staff, left_out)]
    total: Option<Money>,
    /// Staff only: the discounts of the line, in the currency of its `total`. The `total` is the
    /// amount paid, so it does not contain them. They are allowed only with a `total`.
    #[field(rule = list::<NewLineDiscount>(0..=MAX_LINE_DISCOUNTS), staff, left_out)]
    discounts: Option<Vec<NewLineDiscount>>,
}

#[derive(Body)]
struct NewLineDiscount {
    #[field(rule = DISCOUNT_NAME, example = "regular customer")]
    name: String,
    #[field(rule = MOVED_MONEY)]
    amount: Money,
}

fn fit_together(total: &Option<Money>, discounts: &Option<Vec<NewLineDiscount>>) -> Result<(), Invalid> {
    let discounts = discounts.as_deref().unwrap_or_default();
    let Some(total) = total else {
        let refused = || Err(Invalid::new("are allowed only together with `total`").under("discounts"));
        return if discounts.is_empty() { Ok(()) } else { refused() };
    };
    let others = discounts.iter().enumerate().filter(|(_, discount)| discount.amount.currency != total.currency);
    let error = |(at, _): (usize, &NewLineDiscount)| {
        let other = Invalid::new("must be the currency of the line's total").under("currency").under("amount");
        other.under(&at.to_string()).under("discounts")
    };
    let errors = others.map(error).reduce(|mut errors, error| {
        errors.add(error);
        errors
    });
    errors.map_or(Ok(()), Err)
}

/// The lines of a new order.
pub struct Lines;

impl Rule<Vec<NewOrderLine>> for Lines {
    /// Also accepts more lines than an order can have, because the response then is `too_many_lines`.
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<Vec<NewOrderLine>, Invalid> {
        list(1..=MAX_LINES_READ).read(value, context)
    }
}

impl RuleSchema for Lines {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        list::<NewOrderLine>(1..=MAX_LINES).schema(schemas)
    }

    fn example(&self) -> Option<Node> {
        list::<NewOrderLine>(1..=MAX_LINES).example()
    }
}

impl NewOrderLine {
    /// Returns the line at this position of the body.
    pub fn at(self, position: usize) -> WantedLine {
        let Self { product_id, quantity, total, discounts } = self;
        let discount = |NewLineDiscount { name, amount }| LineDiscount { name, amount: amount.amount };
        let discounts = discounts.into_iter().flatten().map(discount).collect();
        WantedLine { pointer: format!("/lines/{position}"), product_id, quantity, total, discounts }
    }
}

impl WantedLine {
    pub fn error(&self, field: &str, detail: impl Into<Cow<'static, str>>) -> FieldError {
        FieldError::new(format!("{}/{field}", self.pointer), detail).product(&self.product_id)
    }
}

/// A line with its product, and its price before promotions, shipping and tax.
#[derive(Debug)]
pub struct Sold {
    pub quantity: u64,
    pub product: Stored<Product>,
    /// The quantity times the price of the product, or the amount that staff entered.
    pub total: Money,
    pub discounts: Vec<LineDiscount>,
}

impl Sold {
    /// Finds the product of each line, and adds the prices. `list` is the JSON Pointer to the
    /// lines.
    ///
    /// # Errors
    /// 422 if the catalogue lacks the product of a line, or if the prices cannot be added. 409 for
    /// products that are sold only as variants.
    pub fn all(
        wanted: &[WantedLine],
        products: impl IntoIterator<Item = Option<Stored<Product>>>,
        list: &str,
    ) -> Result<(Vec<Self>, Money), Problem> {
        let (mut sold, mut unknown, mut parents) = (Vec::with_capacity(wanted.len()), Vec::new(), Vec::new());
        for (line, product) in wanted.iter().zip(products) {
            match product.filter(|product| !product.retired) {
                Some(product) if product.variants.is_some() => parents.push(line),
                Some(product) => sold.push(Self::of(line, product).map_err(|error| amount_refused(line, error))?),
                None => unknown.push(line),
            }
        }
        if !unknown.is_empty() {
            return Err(unknown_products(unknown));
        }
        if !parents.is_empty() {
            return Err(parents_of_variants(parents));
        }
        let refused =
            |detail: String| Problem::new(Code::InvalidBody, "The order's total is invalid.").error(list, detail);
        let total = order::total(sold.iter().map(|line| &line.total)).map_err(|error| refused(error.to_string()))?;
        let total = total.ok_or_else(|| Problem::new(Code::InvalidBody, "An order must have at least one line."))?;
        if total.amount > MAX_TOTAL {
            return Err(refused(format!("add up to more than {MAX_TOTAL} minor units")));
        }
        Ok((sold, total))
    }

    fn of(line: &WantedLine, product: Stored<Product>) -> Result<Self, MoneyError> {
        let total = match line.total {
            Some(total) if total.currency != product.price.currency => return Err(MoneyError::Mixed),
            // The function accepts the paid amount, even if it is not a multiple of the quantity.
            Some(total) => total,
            None => product.price.times(line.quantity)?,
        };
        Ok(Self { quantity: line.quantity, product, total, discounts: line.discounts.clone() })
    }

    pub fn discount(&self) -> i64 {
        self.discounts.iter().map(|discount| discount.amount).sum()
    }

    pub fn line(&self, order_id: &OrderId, number: u64) -> OrderLine {
        OrderLine {
            order_id: order_id.clone(),
            line: number,
            product_id: self.product.id.clone(),
            product_born: self.product.meta.born.clone(),
            name: self.product.name.clone(),
            thumbnail: self.product.thumbnail.clone(),
            quantity: self.quantity,
            unit_price: self.product.price,
            total: self.total,
            discount: self.discount(),
            discounts: self.discounts.clone(),
            tax: 0,
            tax_rate: None,
            expires_at: None,
            stock_shards: self.product.stock_shards,
            picks: Picks::first(order_id, self.product.stock_shards, self.quantity),
        }
    }
}

/// Reads the products of lines, and the stock from which an order of each line could take its pieces.
/// Nothing is written.
///
/// # Errors
/// 503 `stock_unavailable` with the lines whose items cannot be decoded.
pub async fn offered(services: &Services, wanted: &[WantedLine]) -> Result<Vec<Offered>, Problem> {
    let read = cart::products(wanted.iter().map(|line| &line.product_id))?;
    let items = read_products(services, &read, wanted, 2).await?;
    let mut offered: Vec<_> = cart::with_stocks(items).collect();
    for (line, (product, stock)) in wanted.iter().zip(&mut offered) {
        let Some(product) = product else { continue };
        // A missing stock may not be moved yet.
        let first = match stock.take() {
            None => stock::seen::<()>(&services.table, &product.id).await.map_err(workflow_failed)?,
            first => first,
        };
        if let Some(first) = first {
            let whole = stock::wanted(&services.table, product, first, line.quantity).await;
            *stock = Some(whole.map_err(workflow_failed)?);
        }
    }
    Ok(offered)
}

/// Reads the items of a batch. It ends with `each` items of each line: the product, or the product
/// and its stock.
///
/// # Errors
/// 503 `stock_unavailable` with the lines whose items cannot be decoded.
pub async fn read_products<T: FromItem>(
    services: &Services,
    batch: &BatchGet<T>,
    lines: &[WantedLine],
    each: usize,
) -> Result<Vec<Option<T>>, Problem> {
    let mut found = services.table.batch_get_readable(batch).await?;
    let first = found.items.len().saturating_sub(lines.len() * each);
    found.require(0..first)?;
    let mut at_lines: Vec<usize> = found.unreadable.iter().map(|(at, _)| (at - first) / each).collect();
    at_lines.dedup();
    let Some((_, error)) = found.unreadable.into_iter().next() else { return Ok(found.items) };
    let detail = "cannot be sold until its data is repaired";
    let at_line = |line: &WantedLine| line.error("product_id", detail).reason(Reason::StockUnavailable);
    Err(Problem::stock_unavailable(TableError::Decode(error))
        .errors(at_lines.into_iter().filter_map(|at| lines.get(at)).map(at_line)))
}
