use http_api::contract::rules::QUANTITY;
use http_api::contract::{Page, Schema, route};
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::id::{OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::sales::{self, SaleSummary};
use serde::Serialize;

/// The maximum number of yearly buckets that one request may read.
const MAX_YEARS: i32 = 20;

#[derive(Serialize, Schema)]
struct SaleView<'a> {
    order_id: &'a OrderId,
    placed_at: Instant,
    #[field(rule = QUANTITY, example = 2)]
    quantity: u64,
    #[field(example = {"amount": 258, "currency": "USD"})]
    total: Money,
}

impl<'a> From<&'a SaleSummary> for SaleView<'a> {
    fn from(SaleSummary { order_id, placed_at, quantity, total }: &'a SaleSummary) -> Self {
        Self { order_id, placed_at: *placed_at, quantity: *quantity, total: *total }
    }
}

/// List a product's sales by date
///
/// Returns the sales, newest first. The default of `to` is now. The default of `from` is 1 January
/// of the year before the year of `to`. The range may span at most 20 calendar years. The list shows
/// orders with a short delay. It does not contain cancelled and returned orders.
#[route(GET "/v1/products/{id}/sales", id = "listSales", who = staff, task = "sales", path(id: ProductId),
    parameters(From, To, Limit, Cursor), answers(200 = Page<SaleView<'_>> "A page of sales" [Link, LeftOut]))]
pub async fn of_product(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let product: ProductId = request.path("id")?;
    let (from, to) = (request.query("from")?.unwrap_or_default(), request.query("to")?.unwrap_or_default());
    let parameters = [("product", product.as_str()), ("from", from), ("to", to)];
    let page = request.page(&services.cursors, sales::OF_PRODUCT.id, &parameters).await?;
    let (from, to) = request.query_range()?;
    let to = to.unwrap_or_else(Instant::now);
    // With this default all pages of a list have the same lower bound, unless the year ends between
    // two requests.
    let from = match from {
        Some(from) => from,
        None => {
            format!("{:04}-01-01T00:00:00Z", to.year().saturating_sub(1).max(0)).parse().map_err(Problem::internal)?
        }
    };
    if to.year() - from.year() >= MAX_YEARS {
        return Err(Problem::new(
            Code::InvalidParameter,
            format!("`from` and `to` may span at most {MAX_YEARS} calendar years."),
        ));
    }
    let after = page.after();
    let newest = after.as_deref().map(sales::placed_at_of).transpose().map_err(Problem::internal)?.unwrap_or(to);
    let (wanted, mut items) = (page.limit() + 1, Vec::<SaleSummary>::new());
    for year in (from.year()..=newest.year()).rev() {
        let query = sales::of_product(&product, year, from, to)?.limit(wanted - items.len()).after(after.clone());
        items.extend(services.table.query(&query).await?.items);
        if items.len() >= wanted {
            break;
        }
    }
    let more = items.len() >= wanted;
    items.truncate(page.limit());
    let end = |kept: usize| {
        let last = kept.checked_sub(1).and_then(|last| items.get(last));
        last.filter(|_| more || kept < items.len()).map(SaleSummary::sort_key)
    };
    let views: Vec<SaleView<'_>> = items.iter().map(SaleView::from).collect();
    page.answer(&views, end).await
}
