//! Requests rendered as text, as DynamoDB would receive them.

use std::fmt::Debug;

use key_schema::item::{entity_name, key_of};
use key_schema::key::{Key, PartitionKey};
use key_schema::pattern::{Operation, Pattern};
use key_schema::request::{
    BatchGet, BatchWrite, BatchWriteAction, Get, Guarded, Query, Range, Single, Transaction, Write,
};
use serde_dynamo::AttributeValue;

use crate::support::json;

/// A request from a constructor, split into its parts.
pub struct Shown {
    /// The constructor as `module::function`.
    pub constructor: &'static str,
    pub pattern: &'static Pattern,
    /// The actual operation, independent of the pattern.
    pub operation: Operation,
    pub keys: Vec<Key>,
    pub partitions: Vec<PartitionKey>,
    pub writes: Vec<Guarded>,
    lines: Vec<String>,
}

impl Shown {
    fn new(constructor: &'static str, pattern: &'static Pattern, operation: Operation) -> Self {
        Self { constructor, pattern, operation, keys: vec![], partitions: vec![], writes: vec![], lines: vec![] }
    }

    fn reading(mut self, keys: &[Key], strong: bool) -> Self {
        self.keys = keys.to_vec();
        self.lines = keys.iter().map(place).collect();
        self.lines.extend(strong.then(|| "strongly consistent".to_owned()));
        self
    }

    fn writing(mut self, label: Option<String>, guarded: &Guarded) -> Self {
        let key = key_of_write(&guarded.write);
        let what = match &guarded.write {
            Write::Put { item } => format!("put {}", entity_name(item).unwrap()),
            Write::Update { .. } => "update".into(),
            Write::Delete { .. } => "delete".into(),
            Write::Check { .. } => "check".into(),
        };
        let label = label.map(|label| format!("{label}: ")).unwrap_or_default();
        self.lines.push(format!("{label}{what} {}", place(&key)));
        let rendered = guarded.render();
        self.lines.extend(rendered.update.map(|update| format!("    {update}")));
        self.lines.extend(rendered.condition.map(|condition| format!("    if {condition}")));
        let names: Vec<String> =
            rendered.names.iter().map(|(placeholder, name)| format!("{placeholder} = {name}")).collect();
        self.lines.extend((!names.is_empty()).then(|| format!("    {}", names.join(", "))));
        self.lines
            .extend(rendered.values.iter().map(|(placeholder, value)| format!("    {placeholder} = {}", short(value))));
        self.keys.push(key);
        self.writes.push(guarded.clone());
        self
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}  ({})\n  {:?}", self.pattern.id, self.constructor, self.operation)?;
        self.lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// A request that can be split into its parts.
pub trait Request {
    fn show(self, constructor: &'static str) -> Shown;
}

impl<T> Request for Get<T> {
    fn show(self, constructor: &'static str) -> Shown {
        Shown::new(constructor, self.pattern(), Operation::GetItem).reading(&[self.key().clone()], self.is_strong())
    }
}

impl<T> Request for BatchGet<T> {
    fn show(self, constructor: &'static str) -> Shown {
        Shown::new(constructor, self.pattern(), Operation::BatchGetItem).reading(self.keys(), self.is_strong())
    }
}

impl<T> Request for Query<T> {
    fn show(self, constructor: &'static str) -> Shown {
        let operation = if self.partitions().len() > 1 { Operation::ShardedQuery } else { Operation::Query };
        let mut shown = Shown::new(constructor, self.pattern(), operation);
        shown.partitions = self.partitions().to_vec();
        let index = self.index().map_or("the table", |index| index.name());
        shown.lines.extend(self.partitions().iter().map(|partition| format!("{index}: {partition}")));
        shown.lines.push(match self.bounds() {
            Some(Range::Between(low, high)) => format!("from {low} to {high}"),
            Some(Range::All) => "the whole collection".into(),
            None => "nothing".into(),
        });
        let direction = if self.is_descending() { "backward" } else { "forward" };
        shown.lines.push(format!("{direction}, at most {}", self.item_limit()));
        shown.lines.extend(self.is_strong().then(|| "strongly consistent".to_owned()));
        shown
    }
}

impl<R> Request for Single<R> {
    fn show(self, constructor: &'static str) -> Shown {
        let operation = match &self.guarded().write {
            Write::Put { .. } => Operation::PutItem,
            Write::Update { .. } => Operation::UpdateItem,
            Write::Delete { .. } => Operation::DeleteItem,
            Write::Check { .. } => panic!("{constructor}: a check alone writes nothing"),
        };
        Shown::new(constructor, self.pattern(), operation).writing(None, self.guarded())
    }
}

impl<L: Debug> Request for Transaction<L> {
    fn show(self, constructor: &'static str) -> Shown {
        let shown = Shown::new(constructor, self.pattern(), Operation::TransactWriteItems);
        self.actions().iter().fold(shown, |shown, (label, guarded)| shown.writing(Some(format!("{label:?}")), guarded))
    }
}

impl Request for BatchWrite {
    fn show(self, constructor: &'static str) -> Shown {
        let mut shown = Shown::new(constructor, self.pattern(), Operation::BatchWriteItem);
        for write in self.writes() {
            let (what, key) = match write {
                BatchWriteAction::Put(item) => (format!("put {}", entity_name(item).unwrap()), key_of(item).unwrap()),
                BatchWriteAction::Delete(key) => ("delete".into(), key.clone()),
            };
            shown.lines.push(format!("{what} {}", place(&key)));
            shown.keys.push(key);
        }
        shown
    }
}

fn key_of_write(write: &Write) -> Key {
    match write {
        Write::Put { item } => key_of(item).unwrap(),
        Write::Update { key, .. } | Write::Delete { key } | Write::Check { key } => key.clone(),
    }
}

fn place(key: &Key) -> String {
    format!("{} | {}", key.pk, key.sk)
}

fn short(value: &AttributeValue) -> String {
    json(value).to_string()
}
