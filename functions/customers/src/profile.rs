//! The profile: creating and reading it, with or without the newest orders and questions.

use std::str::FromStr;

use http_api::contract::rules::integer;
use http_api::contract::{Body, route};
use http_api::url::location;
use http_api::view::{CUSTOMER_NAME, CustomerView, OrderSummaryView, QuestionView};
use http_api::{Code, Invalid, Problem, Request, Response, Services};
use key_schema::customer::OverviewItem;
use key_schema::customer::{self, Customer, CustomerAction, Location, OVERVIEW_QUESTIONS};
use key_schema::id::{CustomerId, IdError};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::order::OrderSummary;
use key_schema::question;
use key_schema::text::{Email, Username};
use table::{Page, Refusal, Refusals};

use crate::owner;
use crate::verification::{email_taken, is_vouched_for};
use crate::view::OverviewView;

#[derive(Body)]
#[body(check(id) = not_a_guest)]
struct NewCustomer {
    /// The default is the `sub` of the token. Only staff may give another id. `me` is not an id.
    #[field(left_out)]
    id: Option<CustomerId>,
    email: Email,
    username: Username,
    #[field(rule = CUSTOMER_NAME, example = "Ann Ångström")]
    name: String,
    place: Option<Location>,
}

fn not_a_guest(id: &Option<CustomerId>) -> Result<(), Invalid> {
    match id {
        Some(id) if id.is_guest() => Err(Invalid::new(IdError::Guest.to_string()).under("id")),
        _ => Ok(()),
    }
}

/// Create a customer
///
/// Creates the caller's own profile, with the `sub` of the token as its id. Staff may create a
/// profile with any id. The email address is verified if staff creates the profile, or if the token
/// proves it. A token proves the address if its claim `email` is that address and `email_verified`
/// is true. Otherwise the customer verifies it with a code. Only a verified address is unique.
#[route(POST "/v1/customers", id = "createCustomer", who = owner, task = "profile", body = NewCustomer,
    answers(201 = CustomerView<'_> "The customer" [Location, ETag]),
    refuses(
        forbidden = "the id is not the caller's, and the caller is not staff",
        already_exists = "with Location",
        email_taken = "another customer has verified the address",
        username_taken,
    ))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let NewCustomer { id, email, username, name, place } = request.body()?;
    let id = id.unwrap_or_else(|| caller.id().clone());
    if id != *caller.id() && !caller.is_staff() {
        return Err(Problem::new(Code::Forbidden, "Only staff can create a customer with someone else's id."));
    }
    let now = Instant::now();
    let (email_verified, list_shards) =
        (is_vouched_for(&caller, &email), services.layout(&customer::BY_TIER).await?.write);
    let customer = Customer { email_verified, place, list_shards, ..Customer::new(id, email, username, name) };
    let customer = Stored::new(customer, services.born(now)?, now);
    let location = location(&["customers", customer.id.as_str()]);
    match services.table.transact(&customer::create(&customer)?).await? {
        Ok(()) => Ok(Response::created(location, &CustomerView::from(&customer)).etag(customer.meta.version)),
        Err(refusals) if refusals.names(CustomerAction::Profile) => {
            Err(Problem::new(Code::AlreadyExists, "A customer with this id already exists.").location(location))
        }
        Err(refusals) => Err(name_taken(&refusals)),
    }
}

/// Read a customer
#[route(GET "/v1/customers/{id}", id = "readCustomer", who = owner, task = "profile", path(id: CustomerId),
    answers(200 = CustomerView<'_> "The customer" [ETag]))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let found = services.table.get(&customer::get(owner.customer())?).await?;
    Ok(respond(&found.ok_or_else(no_customer)?))
}

/// Read a customer with the newest 20 orders
///
/// Returns the customer and the newest orders. With `questions=5` the response also has the newest 5
/// questions, without their answers.
#[route(GET "/v1/customers/{id}/overview", id = "readOverview", who = owner, task = "profile", path(id: CustomerId),
    parameters(questions = integer(1..=OVERVIEW_QUESTIONS)
        "The number of questions. Without it the response has no `questions`."),
    answers(200 = OverviewView<'_> "The customer, the newest orders and the newest questions, newest first"
        [LeftOut]))]
pub async fn overview(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let wanted = request.query_as::<QuestionCount>("questions")?;
    // The orders are next to the profile in the partition, so one Query reads both. The questions are
    // next to the profile in the other direction, so a second, concurrent Query reads them.
    let questions = async {
        let Some(QuestionCount(count)) = wanted else { return Ok(None) };
        let query = question::of_customer(owner.customer())?.limit(count);
        Ok::<_, Problem>(Some(services.table.query_readable(&query).await?))
    };
    let profile = async { Ok(services.table.query_readable(&customer::overview(owner.customer())?).await?) };
    let (found, questions) = tokio::try_join!(profile, questions)?;
    let left_out = found.left_out() + questions.as_ref().map_or(0, Page::left_out);
    let now = Instant::now();
    let mut profile = None;
    let mut orders = Vec::new();
    for item in found.items {
        match item {
            OverviewItem::Customer(customer) => profile = Some(customer),
            OverviewItem::CustomerOrder(order) if order.is_expired(now) => {}
            OverviewItem::CustomerOrder(order) => orders.push(OrderSummary::from(order.data)),
            // This route ignores entities that a later release adds to the range.
        }
    }
    // The orders of an erased customer stay, so orders without a profile are possible.
    let profile = profile.ok_or_else(|| no_customer().unless_left_out(left_out))?;
    let questions = questions.as_ref().map(|questions| questions.items.iter().map(QuestionView::from).collect());
    let view = OverviewView {
        customer: CustomerView::from(&profile),
        orders: orders.iter().map(OrderSummaryView::from).collect(),
        questions,
    };
    Ok(Response::ok(&view).leaving_out(left_out))
}

struct QuestionCount(usize);

impl FromStr for QuestionCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // `parse` alone would accept a sign and leading zeros.
        let count = text.parse().ok().filter(|count| (1..=OVERVIEW_QUESTIONS).contains(count));
        let count = count.filter(|count| count.to_string() == text);
        count.map(Self).ok_or_else(|| format!("must be an integer from 1 to {OVERVIEW_QUESTIONS}"))
    }
}

pub fn respond(customer: &Stored<Customer>) -> Response {
    Response::ok(&CustomerView::from(customer)).etag(customer.meta.version)
}

pub fn no_customer() -> Problem {
    Problem::not_found("customer")
}

/// Explains a refused change or erasure. A changed profile leads to 412, even if a name was
/// refused, too. A claim that no longer belongs to this customer also shows that the profile has
/// changed.
pub fn refused(refusals: &Refusals<CustomerAction>) -> Problem {
    match refusals.of(CustomerAction::Profile) {
        Some(profile) => changed_meanwhile(profile),
        None if refusals.names(CustomerAction::OldClaim) => Problem::version_mismatch(),
        None => name_taken(refusals),
    }
}

/// Returns 412 if another request has changed the customer, or 404 if the customer was erased.
pub fn changed_meanwhile<A>(refusal: &Refusal<A>) -> Problem {
    if refusal.item.is_some() { Problem::version_mismatch() } else { no_customer() }
}

/// Returns the problem of a taken email address or user name. If both are taken, the problem names
/// the email address.
fn name_taken(refusals: &Refusals<CustomerAction>) -> Problem {
    if refusals.names(CustomerAction::Email) {
        email_taken()
    } else {
        Problem::new(Code::UsernameTaken, "Another customer has this user name.").error("/username", "is taken")
    }
}
