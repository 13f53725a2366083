use http_api::{Code, List, Problem, Request, Response, Services};
use key_schema::id::{StoreId, check};
use key_schema::money::Money;
use key_schema::place::{self, Month, PlacePath, PlaceSales};
use serde::Serialize;

/// GET sales/{country}?month=&path=: lists the sales of a month by city, store, day and currency.
/// `path` restricts the list to a city, a store or a day of one store.
pub async fn of_place(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let country = request.path_by("country", |text| check(text).map(|()| text.to_owned()))?;
    let month: Month = request
        .query_as("month")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `month` is missing."))?;
    let within: Option<PlacePath> = request.query_as("path")?;
    let (month_text, path) = (month.to_string(), request.query("path")?.unwrap_or_default());
    let parameters = [("country", country.as_str()), ("month", month_text.as_str()), ("path", path)];
    let query = place::sales(&country, &month, within.as_ref())?;
    let List { page, found } = request.list(services, query, &parameters).await?;
    let found = found.sum(|total, part| total.data.add(&part.data));
    List { page, found }.answer(|total| TotalView::from(&total.data))
}

/// The sales of a store on one day, in one currency.
#[derive(Serialize)]
struct TotalView<'a> {
    country: &'a str,
    city: &'a str,
    store_id: &'a StoreId,
    date: &'a str,
    orders: u64,
    total: Money,
}

impl<'a> From<&'a PlaceSales> for TotalView<'a> {
    fn from(sales: &'a PlaceSales) -> Self {
        let PlaceSales { country, city, store_id, date, currency, orders, amount, shard: _ } = sales;
        Self {
            country,
            city,
            store_id,
            date,
            orders: u64::try_from(*orders).unwrap_or(0),
            total: Money::new(*amount, *currency),
        }
    }
}
