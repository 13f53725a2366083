//! A copy of a customer's data, for a customer who requests it.
//!
//! [`Kind::ALL`] lists the kinds of data, and [`read`] returns one page of a kind. The function
//! `customers` returns a page for each request, and `ops customer export` reads all pages. The
//! erasure ([`crate::erasure`]) is the counterpart. A test compares the copy with all stored items
//! of a customer.

use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::{Entity, FromItem, Item, Raw, Stored, is_reserved};
use key_schema::order::{addresses, open};
use key_schema::organization::invitation;
use key_schema::pattern::Pattern;
use key_schema::request::{Get, Query};
use key_schema::{
    cart, customer, document, follow, graph, invoice, order, organization, question, review, session, wallet,
};
use serde::Serialize;
use serde_dynamo::AttributeValue;
use serde_json::{Map, Value};
use table::{Page, Table};

use crate::removal::RemovalError;

/// An order has up to 500 lines, and a question up to 100 answers, so their pages are short.
const LONG_PAGE: usize = 5;
/// The attributes that only the model needs, besides the reserved ones.
const INTERNAL: [&str; 2] = ["list_shards", "unfinished"];

pub const PATTERNS: &[&Pattern] = &[
    &customer::GET,
    &order::OF_CUSTOMER,
    &order::GET,
    &invoice::GET,
    &addresses::OF_CUSTOMER,
    &open::OPEN,
    &cart::GET,
    &session::OF_CUSTOMER,
    &session::READ_ALL,
    &question::OF_CUSTOMER,
    &question::GET,
    &review::BY_CUSTOMER,
    &review::GET,
    &graph::OWN,
    &follow::FOLLOWERS,
    &follow::GET,
    &organization::OF_CUSTOMER,
    &organization::MEMBER,
    &invitation::ROSTER,
    &document::OF_CUSTOMER,
    &document::GET,
    &wallet::EDIT,
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
/// # Errors
/// [`RemovalError`] when the table cannot be read, or an item is unreadable.
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
        Kind::Edges => reader.edges().await,
        Kind::Followers => reader.followers().await,
        Kind::Memberships => reader.memberships().await,
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

impl Reader<'_> {
    async fn one<T>(self, get: Get<T>) -> Result<Page<Record>, RemovalError> {
        let get = get.raw();
        let found = self.table.get(&get).await?.filter(|raw| !is_expired(&raw.item));
        let record = found.as_ref().map(Record::of_raw);
        Ok(Page::new(record.map(|record| (get.key().sk.as_str().to_owned(), record)), None))
    }

    async fn part<T>(&self, get: Get<T>) -> Result<Option<Record>, RemovalError> {
        Ok(self.table.get(&get.raw()).await?.as_ref().map(Record::of_raw))
    }

    async fn page<T: FromItem>(&self, query: Query<T>, limit: usize) -> Result<Page<T>, RemovalError> {
        Ok(self.table.query(&query.limit(limit).after(self.after.clone())).await?)
    }

    async fn list<T>(self, query: Query<T>) -> Result<Page<Record>, RemovalError> {
        let page = self.page(query.raw(), self.limit).await?;
        let records: Vec<_> = page.items.iter().map(Record::of_raw).map(Some).collect();
        Ok(with(page, records))
    }

    /// Returns the customer's copies, each with the order and its invoice as parts.
    async fn orders(self) -> Result<Page<Record>, RemovalError> {
        let query = order::of_customer(self.customer, None, None)?;
        let page = self.page(query, self.limit.min(LONG_PAGE)).await?;
        let mut records = Vec::new();
        for copy in &page.items {
            let mut record = Record::of(copy)?;
            for raw in self.table.query(&order::get(&copy.id)?.raw()).await?.items {
                record.parts.push(Record::of_raw(&raw));
                if let Some(AttributeValue::N(number)) = raw.item.get("invoice_number")
                    && let Ok(number) = number.parse()
                {
                    record.parts.extend(self.part(invoice::get(number)?).await?);
                }
            }
            records.push(Some(record));
        }
        Ok(with(page, records))
    }

    async fn sessions(self) -> Result<Page<Record>, RemovalError> {
        let page = self.page(session::of_customer(self.customer)?, self.limit).await?;
        let sessions = match page.items.is_empty() {
            true => Vec::new(),
            false => self.table.batch_get(&session::read_all(page.items.iter().map(|found| &found.id))?.raw()).await?,
        };
        let records: Vec<_> = sessions.iter().map(|session| session.as_ref().map(Record::of_raw)).collect();
        Ok(with(page, records))
    }

    /// Returns the questions with their answers.
    async fn questions(self) -> Result<Page<Record>, RemovalError> {
        let page = self.page(question::of_customer(self.customer)?, self.limit.min(LONG_PAGE)).await?;
        let mut records = Vec::new();
        for copy in &page.items {
            let mut record = Record::of(copy)?;
            let parts = self.table.query(&question::get(&copy.id)?.raw()).await?.items;
            record.parts.extend(parts.iter().map(Record::of_raw));
            records.push(Some(record));
        }
        Ok(with(page, records))
    }

    async fn reviews(self) -> Result<Page<Record>, RemovalError> {
        let page = self.page(review::by_customer(self.customer)?, self.limit).await?;
        let mut records = Vec::new();
        for found in &page.items {
            records.push(self.part(review::get(&found.product_id, self.customer)?).await?);
        }
        Ok(with(page, records))
    }

    async fn edges(self) -> Result<Page<Record>, RemovalError> {
        let own = graph::own(self.customer)?;
        self.list(own).await
    }

    async fn followers(self) -> Result<Page<Record>, RemovalError> {
        let page = self.page(follow::followers(self.customer)?, self.limit).await?;
        let mut records = Vec::new();
        for found in &page.items {
            records.push(self.part(follow::get(&found.customer_id, self.customer)?).await?);
        }
        Ok(with(page, records))
    }

    async fn memberships(self) -> Result<Page<Record>, RemovalError> {
        let page = self.page(organization::of_customer(self.customer)?, self.limit).await?;
        let mut records = Vec::new();
        for found in &page.items {
            records.push(self.part(organization::member(&found.id, self.customer)?).await?);
        }
        Ok(with(page, records))
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
        let page = self.page(document::of_customer(self.customer)?, self.limit).await?;
        let mut records = Vec::new();
        for tie in &page.items {
            let mut record = Record::of(tie)?;
            let head = self.table.get(&document::get(&tie.document_id)?).await?;
            let is_own = |head: &document::Document| head.is_owner(self.customer) && head.organization_id.is_none();
            let own = head.filter(|head| is_own(head) && !head.deleting);
            record.parts.extend(own.as_ref().map(Record::of).transpose()?);
            records.push(Some(record));
        }
        Ok(with(page, records))
    }
}

fn is_expired(item: &Item) -> bool {
    let Some(AttributeValue::N(ttl)) = item.get("ttl") else { return false };
    ttl.parse().is_ok_and(|ttl: i64| ttl <= Instant::now().as_seconds())
}

/// Returns the page with a record instead of each item. An item without a record is left out.
fn with<T>(page: Page<T>, records: impl IntoIterator<Item = Option<Record>>) -> Page<Record> {
    let mut records = records.into_iter();
    page.filter_map(|_| records.next().flatten())
}
