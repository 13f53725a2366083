use http_api::{Code, Problem, Request, Response, Services};
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::sales::{self, SaleSummary};

/// The maximum number of yearly buckets that one request may read.
const MAX_YEARS: i32 = 20;

/// GET products/{id}/sales?from=&to=: lists the sales between both bounds, inclusive, newest first.
/// It reads yearly buckets, the newest first, until the page is full.
///
/// The default `to` is now, and the default `from` is 1 January of the year before `to`. So all
/// pages of a list have the same lower bound, unless the year ends between two requests.
pub async fn of_product(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let product: ProductId = request.path("id")?;
    let (from, to) = (request.query("from")?.unwrap_or_default(), request.query("to")?.unwrap_or_default());
    let parameters = [("product", product.as_str()), ("from", from), ("to", to)];
    let page = request.page(&services.cursors, sales::OF_PRODUCT.id, &parameters).await?;
    let (from, to) = request.query_range()?;
    let to = to.unwrap_or_else(Instant::now);
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
    page.answer(&items, end).await
}
