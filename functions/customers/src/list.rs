use http_api::contract::{Page, route};
use http_api::view::CustomerView;
use http_api::{Code, List, Problem, Request, Response, Services};
use key_schema::customer::{self, Customer, CustomerSummary, Tier};
use key_schema::text::Email;

/// List all customers, or find customers by email address or tier
///
/// Returns all customers, the customers of a tier, or the one customer with the verified address
/// `email`. The oldest customer comes first. A search by `email` does not find an unverified address.
/// Give at most one of `email` and `tier`.
#[route(GET "/v1/customers", id = "findCustomers", who = staff, task = "customers",
    parameters(
        email: Email = "An email address in any spelling. The list then has at most one customer.",
        tier: Tier = "The tier of the customers.",
        Limit,
        Cursor,
    ),
    answers(200 = Page<CustomerView<'_>> "A page of customers" [Link, LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    match (request.query_as::<Email>("email")?, request.query_as::<Tier>("tier")?) {
        (Some(email), None) => by_email(services, request, &email).await,
        (None, Some(tier)) => by_tier(services, request, tier).await,
        (None, None) => all(services, request).await,
        _ => Err(Problem::new(Code::InvalidParameter, "Give only one of `email` and `tier`.")),
    }
}

/// Returns a page with at most one customer: the customer who has verified the address. Other
/// customers may have entered the same address.
async fn by_email(services: &Services, request: &Request<'_>, email: &Email) -> Result<Response, Problem> {
    // This list has only one page. The call still refuses a bad limit or another list's cursor.
    request.page(&services.cursors, customer::BY_EMAIL.id, &[("email", email.as_str())]).await?;
    let found = match services.table.get(&customer::by_email(email.as_str())?).await? {
        Some(claim) => services.table.get(&customer::get(&claim.customer_id)?).await?,
        None => None,
    };
    let items: Vec<_> = found.iter().map(CustomerView::from).collect();
    Ok(Response::all(&items))
}

/// Returns a page of the customers in a tier, the oldest first. The index has only their ids.
async fn by_tier(services: &Services, request: &Request<'_>, tier: Tier) -> Result<Response, Problem> {
    let parameters = [("tier", tier.as_str())];
    let list = request
        .list(services, customer::by_tier(tier, services.layout(&customer::BY_TIER).await?)?, &parameters)
        .await?;
    respond(services, list, |customer| customer.tier == tier).await
}

/// Returns a page of all customers, the oldest first.
async fn all(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let List { page, found } =
        request.list(services, customer::all(services.layout(&customer::BY_TIER).await?)?, &[]).await?;
    // A customer whose tier has just changed may be in the lists of two tiers. Both entries have
    // the same sort key, so the merge shows the customer once.
    let found = found.sum(|_, _| ());
    respond(services, List { page, found }, |_| true).await
}

/// Reads the profiles of a page. The index is eventually consistent, so the function omits
/// customers who are erased, or who no longer match `wanted`.
async fn respond(
    services: &Services,
    List { mut page, found }: List<'_, CustomerSummary>,
    wanted: impl Fn(&Customer) -> bool,
) -> Result<Response, Problem> {
    let read = customer::hydrate(found.items.iter().map(|listed| &listed.id))?;
    let profiles = services.table.batch_get_readable(&read).await?;
    page.leave_out(profiles.unreadable.len());
    let mut profiles = profiles.items.into_iter();
    let found = found.filter_map(|_| profiles.next().flatten().filter(|customer| wanted(customer)));
    List { page, found }.answer(CustomerView::from).await
}
