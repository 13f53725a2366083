//! A copy of a customer's data, for a customer who requests it.
//!
//! [`Kind::ALL`] lists the kinds of data, and [`read`] returns one page of a kind. The function
//! `customers` returns a page for each request, and `ops customer export` reads all pages. The
//! erasure ([`crate::erasure`]) is the counterpart. A test compares the copy with all stored items
//! of a customer.

use std::str::FromStr;

use futures::future::try_join_all;
use key_schema::document::Document;
use key_schema::id::{CustomerId, DocumentId, OrderId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, FromItem, Item, Raw, Stored, is_reserved};
use key_schema::key::KeyError;
use key_schema::order::{addresses, open};
use key_schema::organization::invitation;
use key_schema::pattern::Pattern;
use key_schema::request::{BatchGet, Get, Query};
use key_schema::{
    cart, customer, document, follow, graph, invoice, order, organization, question, review, session, wallet,
};
use serde::Serialize;
use serde_dynamo::AttributeValue;
use serde_json::{Map, Value};
use table::{Page, Table};

use crate::removal::RemovalError;

/// A page has at most so many orders, each with up to 500 lines.
const ORDERS: usize = 20;
/// The maximum number of lines in a page of orders, apart from the lines of its first order.
const ORDER_LINES: u64 = 500;
/// A question has up to 100 answers.
const QUESTIONS: usize = 5;
/// The attributes that only the model needs, besides the reserved ones.
const INTERNAL: [&str; 3] = ["list_shards", "token_hash", "unfinished"];

pub const PATTERNS: &[&Pattern] = &[
    &customer::DATA_PARTS,
    &customer::COUNT_DATA_PAGE,
    &order::OF_CUSTOMER,
    &order::GET,
    &addresses::OF_CUSTOMER,
    &session::OF_CUSTOMER,
    &session::READ_ALL,
    &question::OF_CUSTOMER,
    &question::GET,
    &review::BY_CUSTOMER,
    &graph::OWN,
    &follow::FOLLOWERS,
    &organization::OF_CUSTOMER,
    &document::OF_CUSTOMER,
    &wallet::ENTRIES,
];

/// A kind of personal data. Each kind is one list or one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Profile,
    Orders,
    Addresses,
    OpenOrders,
    Cart,
    Sessions,
    Questions,
    Reviews,
    /// Follows and likes of the customer.
    Edges,
    Followers,
    Memberships,
    Invitations,
    Documents,
    Wallet,
    WalletEntries,
}

impl Kind {
    pub const ALL: [Self; 15] = [
        Self::Profile,
        Self::Orders,
        Self::Addresses,
        Self::OpenOrders,
        Self::Cart,
        Self::Sessions,
        Self::Questions,
        Self::Reviews,
        Self::Edges,
        Self::Followers,
        Self::Memberships,
        Self::Invitations,
        Self::Documents,
        Self::Wallet,
        Self::WalletEntries,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Orders => "orders",
            Self::Addresses => "order_addresses",
            Self::OpenOrders => "open_orders",
            Self::Cart => "cart",
            Self::Sessions => "sessions",
            Self::Questions => "questions",
            Self::Reviews => "reviews",
            Self::Edges => "follows_and_likes",
            Self::Followers => "followers",
            Self::Memberships => "memberships",
            Self::Invitations => "invitations",
            Self::Documents => "documents",
            Self::Wallet => "wallet",
            Self::WalletEntries => "wallet_entries",
        }
    }

    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the kind after this one in [`Kind::ALL`].
    #[must_use]
    pub fn next(self) -> Option<Self> {
        Self::ALL.into_iter().skip_while(|kind| *kind != self).nth(1)
    }
}

/// A stored item without the attributes of the model, and the items that belong to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// The name of the entity.
    pub entity: String,
    pub data: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Self>,
}

impl Record {
    pub fn of<T: Entity>(item: &Stored<T>) -> Result<Self, RemovalError> {
        Ok(Self::from_item(T::NAME, &item.to_item()?))
    }

    fn of_raw(raw: &Raw) -> Self {
        Self::from_item(&raw.entity, &raw.item)
    }

    fn from_item(entity: &str, item: &Item) -> Self {
        let is_wanted = |name: &str| {
            matches!(name, "created_at" | "updated_at") || !(is_reserved(name) || INTERNAL.contains(&name))
        };
        let data = item.iter().filter(|(name, _)| is_wanted(name)).map(|(name, value)| (name.clone(), plain(value)));
        Self { entity: entity.to_owned(), data: data.collect(), parts: Vec::new() }
    }
}

/// Returns a value as JSON without DynamoDB's types. The table has no binary values.
fn plain(value: &AttributeValue) -> Value {
    let number = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    match value {
        AttributeValue::S(text) => Value::String(text.clone()),
        AttributeValue::N(text) => number(text),
        AttributeValue::Bool(value) => Value::Bool(*value),
        AttributeValue::M(map) => Value::Object(map.iter().map(|(name, value)| (name.clone(), plain(value))).collect()),
        AttributeValue::L(list) => Value::Array(list.iter().map(plain).collect()),
        AttributeValue::Ss(texts) => Value::Array(texts.iter().cloned().map(Value::String).collect()),
        AttributeValue::Ns(numbers) => Value::Array(numbers.iter().map(|text| number(text)).collect()),
        AttributeValue::Null(_) | AttributeValue::B(_) | AttributeValue::Bs(_) => Value::Null,
    }
}

/// Reads one page of a kind, at most `limit` records, after the sort key at which the previous page
/// ended.
///
/// An unreadable item is logged, left out and counted ([`Page::left_out`]), so that it does not end
/// the copy.
pub async fn read(
    table: &Table,
    kind: Kind,
    customer: &CustomerId,
    limit: usize,
    after: Option<String>,
) -> Result<Page<Record>, RemovalError> {
    let reader = Reader { table, customer, limit, after };
    match kind {
        Kind::Profile => reader.one(customer::get(customer)?).await,
        Kind::Orders => reader.orders().await,
        Kind::Addresses => reader.list(addresses::of_customer(customer)?).await,
        Kind::OpenOrders => reader.one(open::get(customer)?).await,
        Kind::Cart => reader.one(cart::get(customer)?).await,
        Kind::Sessions => reader.sessions().await,
        Kind::Questions => reader.questions().await,
        Kind::Reviews => reader.reviews().await,
        Kind::Edges => reader.list(graph::own(customer)?).await,
        Kind::Followers => {
            reader.items(follow::followers(customer)?, |found| follow::get(&found.customer_id, customer)).await
        }
        Kind::Memberships => {
            reader.items(organization::of_customer(customer)?, |found| organization::member(&found.id, customer)).await
        }
        Kind::Invitations => reader.invitations().await,
        Kind::Documents => reader.documents().await,
        Kind::Wallet => reader.one(wallet::read_for_update(customer)?).await,
        Kind::WalletEntries => reader.list(wallet::entries(customer)?).await,
    }
}

struct Reader<'a> {
    table: &'a Table,
    customer: &'a CustomerId,
    limit: usize,
    after: Option<String>,
}

/// The items of some records of a page, by the position of the record.
type Parts = Vec<Option<Raw>>;

impl Reader<'_> {
    async fn one<T>(self, get: Get<T>) -> Result<Page<Record>, RemovalError> {
        let sort = get.key().sk.as_str().to_owned();
        let (found, left_out) = self.parts(customer::data_parts([Ok(get)])?).await?;
        let found = found.into_iter().flatten().filter(|raw| !is_expired(&raw.item));
        let mut page = Page::new(found.map(|raw| (sort.clone(), Record::of_raw(&raw))), None);
        page.leave_out(left_out);
        Ok(page)
    }

    /// Reads items, and counts the unreadable ones.
    async fn parts(&self, batch: BatchGet<Raw>) -> Result<(Parts, usize), RemovalError> {
        if batch.keys().is_empty() {
            return Ok((Vec::new(), 0));
        }
        let found = self.table.batch_get_readable(&batch).await?;
        Ok((found.items, found.unreadable.len()))
    }

    async fn page<T: FromItem>(&self, query: Query<T>, limit: usize) -> Result<Page<T>, RemovalError> {
        Ok(self.table.query_readable(&query.limit(limit).after(self.after.clone())).await?)
    }

    async fn list<T>(self, query: Query<T>) -> Result<Page<Record>, RemovalError> {
        let page = self.page(query.raw(), self.limit).await?;
        Ok(page.filter_map(|raw| Some(Record::of_raw(&raw))))
    }

    /// Returns a page of the items to which the entries of a list lead.
    async fn items<T: FromItem, U>(
        self,
        query: Query<T>,
        get: impl Fn(&T) -> Result<Get<U>, KeyError>,
    ) -> Result<Page<Record>, RemovalError> {
        let page = self.page(query, self.limit).await?;
        let read = customer::data_parts(page.items.iter().map(get))?;
        let (items, left_out) = self.parts(read).await?;
        Ok(with(page, items, left_out))
    }

    async fn reviews(self) -> Result<Page<Record>, RemovalError> {
        let customer = self.customer;
        let read = |found: &review::ReviewSummary| review::get(&found.product_id, customer);
        let mut page = self.items(review::by_customer(customer)?, read).await?;
        for record in &mut page.items {
            if let Some(name) = record.data.remove("reference") {
                record.data.insert("display_name".to_owned(), name);
            }
        }
        Ok(page)
    }

    /// Returns the customer's copies, each with the order and its invoice as parts.
    async fn orders(self) -> Result<Page<Record>, RemovalError> {
        let query = order::of_customer(self.customer, None, None)?.raw();
        let mut page = self.page(query, self.limit.min(ORDERS)).await?;
        let mut lines = 0_u64;
        let fits = |copy: &&Raw| {
            lines = lines.saturating_add(number(copy, "line_count").unwrap_or_default());
            lines <= ORDER_LINES
        };
        let fitting = page.items.iter().take_while(fits).count();
        page.truncate(fitting.max(1));
        let mut page = self.threads(page, "id", |id: &OrderId| Ok(order::get(id)?.raw())).await?;
        let places: Vec<(usize, usize, u64)> = page.items.iter().enumerate().flat_map(invoiced).collect();
        let read = customer::data_parts(places.iter().map(|(.., number)| invoice::get(*number)))?;
        let (invoices, left_out) = self.parts(read).await?;
        page.leave_out(left_out);
        for ((record, part, _), invoice) in places.into_iter().zip(invoices) {
            if let (Some(record), Some(invoice)) = (page.items.get_mut(record), invoice) {
                record.parts.insert(part, Record::of_raw(&invoice));
            }
        }
        Ok(page)
    }

    async fn sessions(self) -> Result<Page<Record>, RemovalError> {
        let page = self.page(session::of_customer(self.customer)?, self.limit).await?;
        if page.items.is_empty() {
            return Ok(with(page, Vec::new(), 0));
        }
        let read = session::read_all(page.items.iter().map(|found| &found.id))?.raw();
        let found = self.table.batch_get_readable(&read).await?;
        Ok(with(page, found.items, found.unreadable.len()))
    }

    /// Returns the questions with their answers.
    async fn questions(self) -> Result<Page<Record>, RemovalError> {
        let page = self.page(question::of_customer(self.customer)?.raw(), self.limit.min(QUESTIONS)).await?;
        self.threads(page, "id", |id: &QuestionId| Ok(question::get(id)?.raw())).await
    }

    /// Returns the records of copies, each with the items of the query for the id in the copy.
    async fn threads<K: FromStr>(
        &self,
        page: Page<Raw>,
        attribute: &str,
        query: impl Fn(&K) -> Result<Query<Raw>, KeyError>,
    ) -> Result<Page<Record>, RemovalError> {
        let read = page.items.iter().map(|copy| {
            let query = id(copy, attribute).map(|id| query(&id)).transpose();
            async move {
                match query? {
                    Some(query) => Ok::<_, RemovalError>(Some(self.table.query_readable(&query).await?)),
                    None => Ok(None),
                }
            }
        });
        let mut parts = try_join_all(read).await?.into_iter();
        let mut left_out = 0;
        let mut page = page.filter_map(|copy| {
            let mut record = Record::of_raw(&copy);
            match parts.next().flatten() {
                Some(found) => {
                    left_out += found.left_out();
                    record.parts.extend(found.items.iter().map(Record::of_raw));
                }
                None => left_out += 1,
            }
            Some(record)
        });
        page.leave_out(left_out);
        Ok(page)
    }

    /// Returns the list of open invitations. Who has sent one is data of that person.
    async fn invitations(self) -> Result<Page<Record>, RemovalError> {
        let roster = invitation::roster(self.customer)?;
        let mut page = self.one(roster).await?;
        let open = page.items.iter_mut().filter_map(|roster| roster.data.get_mut("open")?.as_object_mut());
        for invitation in open.flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
            invitation.remove("inviter");
        }
        Ok(page)
    }

    /// Returns the customer's roles in documents, each with the document's head if it is the
    /// customer's own. A document of an organization is the organization's data. A text can be
    /// large, so the routes of documents return the texts.
    async fn documents(self) -> Result<Page<Record>, RemovalError> {
        let page = self.page(document::of_customer(self.customer)?.raw(), self.limit).await?;
        let ids: Vec<Option<DocumentId>> = page.items.iter().map(|tie| id(tie, "document_id")).collect();
        let read = customer::data_parts(ids.iter().flatten().map(document::get))?;
        let (heads, mut left_out) = self.parts(read).await?;
        let (mut heads, mut ids) = (heads.into_iter(), ids.into_iter());
        let mut page = page.filter_map(|tie| {
            let mut record = Record::of_raw(&tie);
            match ids.next().flatten().map(|_| heads.next().flatten()) {
                Some(Some(raw)) => match Stored::<Document>::from_item(raw.item.clone()) {
                    Ok(head) if head.deleting || head.organization_id.is_some() => {}
                    Ok(head) if head.is_owner(self.customer) => record.parts.push(Record::of_raw(&raw)),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::error!(cause = error.for_log(), "an unreadable document is left out of a copy");
                        left_out += 1;
                    }
                },
                Some(None) => {}
                None => left_out += 1,
            }
            Some(record)
        });
        page.leave_out(left_out);
        Ok(page)
    }
}

/// Returns the id in an attribute of an item.
fn id<K: FromStr>(raw: &Raw, attribute: &str) -> Option<K> {
    let Some(AttributeValue::S(text)) = raw.item.get(attribute) else { return None };
    text.parse().ok()
}

fn number(raw: &Raw, attribute: &str) -> Option<u64> {
    let Some(AttributeValue::N(text)) = raw.item.get(attribute) else { return None };
    text.parse().ok()
}

/// Returns the place for an order's invoice, which is behind the order's head, and its number.
fn invoiced((at, record): (usize, &Record)) -> Option<(usize, usize, u64)> {
    let number = |part: &Record| part.data.get("invoice_number").and_then(Value::as_u64);
    record.parts.iter().enumerate().find_map(|(part, of)| Some((at, part + 1, number(of)?)))
}

fn is_expired(item: &Item) -> bool {
    let Some(AttributeValue::N(ttl)) = item.get("ttl") else { return false };
    ttl.parse().is_ok_and(|ttl: i64| ttl <= Instant::now().as_seconds())
}

/// Returns the page with the record of an item instead of each entry. An entry without an item is
/// left out.
fn with<T>(page: Page<T>, items: Parts, left_out: usize) -> Page<Record> {
    let mut items = items.into_iter();
    let mut page = page.filter_map(|_| items.next().flatten().as_ref().map(Record::of_raw));
    page.leave_out(left_out);
    page
}
