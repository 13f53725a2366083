//! Builds the keys of access patterns from given values, with the constructors of the schema.

use std::collections::BTreeMap;
use std::str::FromStr;

use key_schema::customer::Tier;
use key_schema::id::{
    AgentId, CheckoutId, CounterName, CustomerId, DeliveryId, DocumentId, EndpointId, GuestCartId, LocationId, OrderId,
    OrganizationId, ProductId, QuestionId, SessionId, StoreId,
};
use key_schema::instant::Instant;
use key_schema::key::{Key, KeyError};
use key_schema::leaderboard::Period;
use key_schema::order::OrderStatus;
use key_schema::pattern::Pattern;
use key_schema::product::{CategoryPath, Stock};
use key_schema::request::{BatchGet, Get, Query, Range};
use key_schema::{
    agent, cart, category, checkout_session, counter, customer, document, expiration, follow, graph, guest_cart,
    invoice, leaderboard, like, lists, location, membership, order, organization, picking, picture, product, question,
    region, residence, review, sales, session, verification, wallet, webhook_delivery, webhook_endpoint,
};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyCondition {
    /// Partition keys: one for each item, or one for each shard of a list.
    pub partitions: Vec<String>,
    /// Sort keys: one for each item, or the bounds of a range. Empty for a whole collection.
    pub sort: Vec<String>,
    /// Whether the pattern reads a range or a whole collection, and not single items.
    pub is_range: bool,
    pub is_descending: bool,
}

/// The reason why no key was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gap {
    Missing,
    /// A value is given and not valid: its name and the reason.
    Invalid(String, String),
}

impl From<KeyError> for Gap {
    fn from(error: KeyError) -> Self {
        Self::Invalid("values".to_owned(), error.to_string())
    }
}

/// The given values by the kind of thing that they name.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(pub BTreeMap<String, String>);

impl Values {
    fn get<T: FromStr<Err: ToString>>(&self, kind: &str) -> Result<T, Gap> {
        let text = self.0.get(kind).ok_or(Gap::Missing)?;
        text.parse().map_err(|error: T::Err| Gap::Invalid(kind.to_owned(), error.to_string()))
    }

    fn optional<T: FromStr<Err: ToString>>(&self, kind: &str) -> Result<Option<T>, Gap> {
        match self.get(kind) {
            Ok(value) => Ok(Some(value)),
            Err(Gap::Missing) => Ok(None),
            Err(invalid) => Err(invalid),
        }
    }

    fn customer(&self) -> Result<CustomerId, Gap> {
        self.get("customer")
    }

    fn product(&self) -> Result<ProductId, Gap> {
        self.get("product")
    }

    fn order(&self) -> Result<OrderId, Gap> {
        self.get("order")
    }

    fn organization(&self) -> Result<OrganizationId, Gap> {
        self.get("organization")
    }

    fn category(&self) -> Result<CategoryPath, Gap> {
        let text: String = self.get("category")?;
        CategoryPath::from_segment(&text).map_err(|error| Gap::Invalid("category".to_owned(), error.to_string()))
    }
}

fn items(keys: &[Key]) -> KeyCondition {
    KeyCondition {
        partitions: keys.iter().map(|key| key.pk.to_string()).collect(),
        sort: keys.iter().map(|key| key.sk.to_string()).collect(),
        is_range: false,
        is_descending: false,
    }
}

fn get<T>(get: Result<Get<T>, KeyError>) -> Result<KeyCondition, Gap> {
    Ok(items(std::slice::from_ref(get?.key())))
}

fn batch<T>(batch: Result<BatchGet<T>, KeyError>) -> Result<KeyCondition, Gap> {
    Ok(items(batch?.keys()))
}

fn query<T>(query: Result<Query<T>, KeyError>) -> Result<KeyCondition, Gap> {
    let query = query?;
    let sort = match query.bounds() {
        Some(Range::Between(low, high)) => vec![low, high],
        Some(Range::All) | None => Vec::new(),
    };
    let partitions = query.partitions().iter().map(ToString::to_string).collect();
    Ok(KeyCondition { partitions, sort, is_range: true, is_descending: query.is_descending() })
}

fn board_period(values: &Values) -> Result<Period, Gap> {
    let date = match values.optional::<String>("date")? {
        Some(day) => format!("{day}T00:00:00Z").parse().map_err(|_| invalid("date", "must be a day"))?,
        None => Instant::now(),
    };
    match values.optional::<String>("period")?.as_deref() {
        None | Some("day") => Ok(Period::day(date)),
        Some("week") => Ok(Period::week(date)),
        Some("all") => Ok(Period::All),
        Some(_) => Err(invalid("period", "must be day, week or all")),
    }
}

fn invalid(kind: &str, reason: &str) -> Gap {
    Gap::Invalid(kind.to_owned(), reason.to_owned())
}

type Make = fn(&Values) -> Result<KeyCondition, Gap>;

/// The constructors of reads, by pattern. A write uses the constructor of the read whose key has
/// the same text.
const CONSTRUCTORS: &[(&Pattern, Make)] = &[
    (&customer::GET, |v| get(customer::get(&v.customer()?))),
    (&customer::EDIT, |v| get(customer::read_for_update(&v.customer()?))),
    (&customer::OVERVIEW, |v| query(customer::overview(&v.customer()?))),
    (&customer::BY_EMAIL, |v| get(customer::by_email(&v.get::<String>("email")?))),
    (&customer::BY_TIER, |v| query(customer::by_tier(v.get::<Tier>("tier")?, lists::unchanged()))),
    (&customer::ALL, |_| query(customer::all(lists::unchanged()))),
    (&residence::OF_LOCATION, |v| query(residence::of_location(&v.get("place")?))),
    (&verification::READ, |v| batch(verification::read(&v.customer()?))),
    (&session::GET, |v| get(session::get(&v.get::<SessionId>("session")?))),
    (&session::ACTIVE, |v| query(session::active(&v.customer()?, Instant::now()))),
    (&session::OF_CUSTOMER, |v| query(session::of_customer(&v.customer()?))),
    (&cart::GET, |v| get(cart::get(&v.customer()?))),
    (&cart::PREPARE, |v| batch(cart::prepare(&v.customer()?, &v.product()?))),
    (&guest_cart::GET, |v| get(guest_cart::get(&v.get::<GuestCartId>("cart")?))),
    (&agent::GET, |v| get(agent::get(&v.get::<AgentId>("agent")?))),
    (&agent::LIST, |_| query(agent::list())),
    (&checkout_session::GET, |v| get(checkout_session::get(&v.get::<CheckoutId>("checkout")?))),
    (&webhook_endpoint::GET, |v| get(webhook_endpoint::get(&v.get::<EndpointId>("endpoint")?))),
    (&webhook_endpoint::LIST, |_| query(webhook_endpoint::list())),
    (&webhook_delivery::GET, |v| {
        get(webhook_delivery::get(&v.get::<EndpointId>("endpoint")?, &v.get::<DeliveryId>("delivery")?))
    }),
    (&webhook_delivery::LIST, |v| query(webhook_delivery::list(&v.get::<EndpointId>("endpoint")?))),
    (&webhook_delivery::DUE, |v| query(webhook_delivery::due(&v.get::<EndpointId>("endpoint")?, Instant::now()))),
    (&cart::PRODUCTS, |v| batch(cart::products([&v.product()?]))),
    (&product::PAGE, |v| query(product::page(&v.product()?))),
    (&product::EDIT, |v| get(product::read_for_update(&v.product()?))),
    (&location::GET, |v| get(location::get(&v.get::<LocationId>("location")?))),
    (&location::LIST, |_| query(location::list())),
    (&product::READ_STOCK_AT, |v| batch(product::stock_at(&v.product()?, &v.get::<LocationId>("location")?))),
    (&product::SHOW_STOCK, |v| get(product::shown_stock(&v.product()?))),
    (&product::READ_SHARDS, |v| {
        let first = Stock { shards: Some(2), ..Stock::new(v.product()?, 0) };
        Ok(items(product::further_shards(&first)?.as_ref().map_or(&[], BatchGet::keys)))
    }),
    (&product::LIST_SHARDED, |_| query(product::sharded())),
    (&product::READ_STOCK, |v| get(product::stock(&v.product()?))),
    (&product::old_stock::READ_OLD_STOCK, |v| get(product::old_stock(&v.product()?))),
    (&product::GET_CONTENT, |v| batch(product::content(&v.product()?))),
    (&product::IN_CATEGORY, |v| query(product::in_category(&v.category()?))),
    (&membership::PREPARE, |v| batch(membership::prepare(&v.product()?))),
    (&picture::LIST, |v| batch(picture::list(&v.product()?))),
    (&picture::PREPARE, |v| batch(picture::prepare(&v.product()?))),
    (&category::GET, |v| batch(category::get(&v.category()?))),
    (&category::KNOWN, |v| batch(category::known([&v.category()?]))),
    (&category::CHILDREN, |v| query(category::children(Some(&v.category()?)))),
    (&category::SUBTREE, |v| query(category::subtree(&v.category()?))),
    (&category::ANCESTORS, |v| batch(category::ancestors(&v.category()?))),
    (&category::relocation::GET, |_| get(category::relocation::get())),
    (&review::GET, |v| get(review::get(&v.product()?, &v.customer()?))),
    (&review::EDIT, |v| get(review::read_for_update(&v.product()?, &v.customer()?))),
    (&review::STATS, |v| batch(review::stats(&v.product()?))),
    (&review::NEWEST, |v| query(review::newest(&v.product()?))),
    (&review::BEST, |v| query(review::best(&v.product()?))),
    (&review::BY_CUSTOMER, |v| query(review::by_customer(&v.customer()?))),
    (&order::GET, |v| query(order::get(&v.order()?))),
    (&order::EDIT, |v| query(order::read_for_update(&v.order()?))),
    (&order::LINES, |v| query(order::lines(&v.order()?))),
    (&order::HEAD, |v| get(order::head(&v.order()?))),
    (&order::LOG, |v| query(order::log(&v.order()?))),
    (&order::daily_log::OF_DAY, |v| query(order::daily_log::of_day(&v.get::<String>("day")?, lists::unchanged()))),
    (&order::parts::WITH_LINES, |v| query(order::parts::with_lines(&v.order()?))),
    (&order::parts::WITH_HISTORY, |v| query(order::parts::with_history(&v.order()?))),
    (&order::open::OPEN, |v| get(order::open::get(&v.customer()?))),
    (&order::OF_CUSTOMER, |v| query(order::of_customer(&v.customer()?, v.optional("from")?, v.optional("to")?))),
    (&order::BY_STATUS, |v| {
        let (status, from, to) = (v.get::<OrderStatus>("status")?, v.optional("from")?, v.optional("to")?);
        query(order::by_status(status, from, to, lists::unchanged()))
    }),
    (&order::SHIPMENTS, |v| query(order::shipments(&v.customer()?, v.optional("since")?))),
    (&invoice::GET, |v| get(invoice::get(v.get("number")?))),
    (&invoice::COUNTER, |_| get(invoice::counter())),
    (&sales::BOUGHT, |v| query(sales::bought(&v.customer()?))),
    (&region::GET, |v| get(region::get(&v.get::<StoreId>("store")?))),
    (&region::SALES, |v| query(region::sales(&v.get::<String>("country")?, &v.get("month")?, None))),
    (&wallet::READ, |v| batch(wallet::read(&v.customer()?))),
    (&wallet::EDIT, |v| get(wallet::read_for_update(&v.customer()?))),
    (&wallet::ENTRIES, |v| query(wallet::entries(&v.customer()?))),
    (&follow::PREPARE, |v| get(follow::prepare(&v.get::<CustomerId>("other")?))),
    (&follow::GET, |v| get(follow::get(&v.customer()?, &v.get::<CustomerId>("other")?))),
    (&follow::FOLLOWING, |v| query(follow::following(&v.customer()?))),
    (&follow::FOLLOWERS, |v| query(follow::followers(&v.customer()?))),
    (&like::PREPARE, |v| get(like::prepare(&v.product()?))),
    (&like::GET, |v| get(like::get(&v.customer()?, &v.product()?))),
    (&like::OF_CUSTOMER, |v| query(like::of_customer(&v.customer()?))),
    (&like::LIKED, |v| get(like::liked(&v.product()?))),
    (&like::COUNT, |v| query(like::of_product(&v.product()?))),
    (&like::SUM, |v| query(like::sum(&v.product()?))),
    (&leaderboard::TOP, |v| query(leaderboard::top(v.get("by")?, board_period(v)?))),
    (&leaderboard::PRODUCTS, |v| batch(leaderboard::products([&v.product()?]))),
    (&like::LIKERS, |v| query(like::likers(&v.product()?))),
    (&graph::LIVES_IN, |v| get(graph::lives_in(&v.customer()?))),
    (&graph::OWN, |v| query(graph::own(&v.customer()?))),
    (&question::EDIT, |v| get(question::read_for_update(&v.get::<QuestionId>("question")?))),
    (&question::GET, |v| query(question::get(&v.get::<QuestionId>("question")?))),
    (&question::ANSWERS, |v| query(question::answers(&v.get::<QuestionId>("question")?))),
    (&question::OF_CUSTOMER, |v| query(question::of_customer(&v.customer()?))),
    (&question::SUPPORT, |v| query(question::support(&v.customer()?))),
    (&question::OPEN, |_| query(question::open())),
    (&counter::HEAD, |v| get(counter::head(&v.get::<CounterName>("counter")?))),
    (&counter::READ, |v| batch(counter::read(&v.get::<CounterName>("counter")?))),
    (&expiration::OF_DAY, |v| query(expiration::of_day(&v.get::<String>("day")?))),
    (&picking::STATIONS, |_| get(picking::stations())),
    (&picking::WAITING, |_| query(picking::waiting())),
    (&organization::GET, |v| query(organization::get(&v.organization()?))),
    (&organization::RENAMED, |v| query(organization::renamed(&v.organization()?))),
    (&organization::HEAD_ONLY, |v| get(organization::head(&v.organization()?))),
    (&organization::MEMBER, |v| get(organization::member(&v.organization()?, &v.get::<CustomerId>("caller")?))),
    (&organization::MEMBERS, |v| query(organization::members(&v.organization()?))),
    (&organization::OF_CUSTOMER, |v| query(organization::of_customer(&v.customer()?))),
    (&organization::invitation::OPEN, |v| query(organization::invitation::open(&v.organization()?))),
    (&organization::invitation::OF_ORGANIZATION, |v| {
        query(organization::invitation::of_organization(&v.organization()?))
    }),
    (&organization::invitation::OF_CUSTOMER, |v| {
        query(organization::invitation::of_customer(&v.customer()?, Instant::now()))
    }),
    (&document::GET, |v| get(document::get(&v.get::<DocumentId>("document")?))),
    (&document::EDIT, |v| get(document::read_for_update(&v.get::<DocumentId>("document")?))),
    (&document::VERSION, |v| batch(document::version(&v.get::<DocumentId>("document")?, v.get("n")?))),
    (&document::VERSIONS, |v| query(document::versions(&v.get::<DocumentId>("document")?))),
    (&document::HISTORY, |v| query(document::history(&v.get::<DocumentId>("document")?))),
    (&document::OF_CUSTOMER, |v| query(document::of_customer(&v.customer()?))),
];

pub(super) fn condition(pattern: &Pattern, values: &Values) -> Result<KeyCondition, Gap> {
    let same = |known: &Pattern| known.key == pattern.key && known.index == pattern.index;
    let own = CONSTRUCTORS.iter().find(|(known, _)| known.id == pattern.id);
    let (_, make) = own.or_else(|| CONSTRUCTORS.iter().find(|(known, _)| same(known))).ok_or(Gap::Missing)?;
    make(values)
}
