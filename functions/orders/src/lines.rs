use std::borrow::Cow;

use http_api::fields::{array, integer, money, parsed, visible_text};
use http_api::json::Value;
use http_api::{Code, FieldError, Invalid, Object, Problem, Reason, Services, SignedIn};
use key_schema::id::{OrderId, ProductId};
use key_schema::item::{FromItem, Stored};
use key_schema::money::{Money, MoneyError};
use key_schema::order::{self, LineDiscount, MAX_LINE_DISCOUNTS, MAX_QUANTITY, MAX_TOTAL, OrderLine};
use key_schema::product::Product;
use key_schema::request::BatchGet;
use table::TableError;

use crate::refusal::{amount_refused, parents_of_variants, unknown_products};

/// The maximum number of lines that are read. A longer array gets a single error about its length.
const MAX_LINES_READ: usize = 10_000;
/// The largest amount that a client may state for a line, in minor units.
const MAX_LINE_AMOUNT: i64 = 1_000_000_000_000;
/// The maximum number of bytes in the name of a line's discount.
const MAX_DISCOUNT_NAME: usize = 64;

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

pub fn read<'a>(caller: &SignedIn) -> impl Fn(Value<'a>) -> Result<Vec<WantedLine>, Invalid> {
    array(1..=MAX_LINES_READ, |value: Value<'a>| {
        let mut line = value.object()?;
        let product_id = line.required("product_id", parsed::<ProductId>);
        let quantity = line.required("quantity", integer(1..=MAX_QUANTITY));
        // Only staff may send `total` and `discounts`. For other callers they are unknown fields.
        let (total, discounts) = if caller.is_staff() {
            let total = line.optional("total", money(0..=MAX_LINE_AMOUNT));
            (total, read_discounts(&mut line, total))
        } else {
            (Some(None), Some(Vec::new()))
        };
        let (product_id, quantity, total, discounts) = line.finish((product_id, quantity, total, discounts))?;
        Ok(WantedLine { pointer: String::new(), product_id, quantity, total, discounts })
    })
}

/// Reads the discounts of a line, in the currency of its total. A line with discounts must have a
/// total, from which the discounts are already subtracted.
fn read_discounts(line: &mut Object<'_>, total: Option<Option<Money>>) -> Option<Vec<LineDiscount>> {
    let currency = total.flatten().map(|total| total.currency);
    let discounts = line.optional(
        "discounts",
        array(0..=MAX_LINE_DISCOUNTS, |value| {
            let mut discount = value.object()?;
            let name = discount.required("name", visible_text(1..=MAX_DISCOUNT_NAME));
            let amount = discount.required("amount", money(1..=MAX_LINE_AMOUNT));
            let (name, amount) = discount.finish((name, amount))?;
            if currency.is_some_and(|currency| currency != amount.currency) {
                let other = Invalid::new("must be the currency of the line's total");
                return Err(other.under("currency").under("amount"));
            }
            Ok(LineDiscount { name, amount: amount.amount })
        }),
    );
    match discounts? {
        Some(discounts) if !discounts.is_empty() && total == Some(None) => {
            line.refuse("discounts", "are allowed only together with `total`")
        }
        discounts => Some(discounts.unwrap_or_default()),
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
        }
    }
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
