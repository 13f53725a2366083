//! Books, and the list of all books. The list is sorted by title and spread over several
//! partitions.
//!
//! A partition takes about 1,000 writes a second, and all books in one partition would share that
//! limit. So a hash of the book's id selects one of [`BOOK_SHARDS`] partitions. A read of the list
//! merges the partitions.

use item_model::change::Change;
use item_model::expression::{Condition, number};
use item_model::item::{EncodeError, Entity, Meta, Stored};
use item_model::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use item_model::pattern::Consistency;
use item_model::prelude::*;
use item_model::request::{Get, Guarded, Query, Range, Single};
use item_model::shard::Shards;
use serde::Deserialize;

use crate::schema::GSI1;

/// The partitions of the list of books.
pub const BOOK_SHARDS: Shards = Shards(4);

ids! { check_id:
    /// The id of a book.
    BookId
}

entity! {
    /// A book, with the number of its copies.
    Book = "Book" {
        fixed {
            /// The book's id.
            id: BookId,
            /// The title, part of the key of the list.
            title: String,
            /// The author.
            author: String,
            /// The number of copies.
            copies: u64,
            /// The number of copies that are not lent. Only loans and returns change it.
            free: u64,
        }
        mutable {}
    }
}

impl Entity for Book {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let partition = list_partition(BOOK_SHARDS.of(self.id.as_str()))?;
        // Books with the same title are in the order of their ids.
        let sort = SortKey::of("TITLE", &[&self.title.to_lowercase(), &self.id])?;
        Ok(vec![IndexKey { index: GSI1, partition, sort }])
    }
}

fn key(id: &BookId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("BOOK", &[id])?, sk: SortKey::new("BOOK")? })
}

fn list_partition(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("BOOKS", &[&shard])
}

/// A book as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BookSummary {
    pub id: BookId,
    pub title: String,
    pub author: String,
}

view!(BookSummary of Book);

patterns! {
    ADD {
        id: "books.add",
        purpose: "Add a book",
        request: PutItem,
        key: "PK = BOOK#<id>, SK = BOOK",
        requires: "does not exist",
        callers: "staff",
    }
    GET {
        id: "books.get",
        purpose: "Read a book",
        request: GetItem,
        key: "PK = BOOK#<id>, SK = BOOK",
        returns: "the book",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    LIST {
        id: "books.list",
        purpose: "List all books by title",
        request: ShardedQuery on GSI1,
        key: "GSI1PK = BOOKS#<shard>, GSI1SK = TITLE#<title>#<id>",
        returns: "books by title",
        consistency: Consistency::Eventual,
        callers: "any",
    }
}

pub(crate) fn add(book: &Stored<Book>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&ADD, Guarded::put(book, Condition::NotExists)?))
}

pub(crate) fn get(id: &BookId) -> Result<Get<Stored<Book>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Lists all books by title.
pub(crate) fn list() -> Result<Query<BookSummary>, KeyError> {
    let shards = BOOK_SHARDS.all().map(list_partition).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&LIST, shards, Range::All))
}

/// The request does not change the book's version, so a loan does not conflict with an edit of the
/// book.
pub(crate) fn take_copy(id: &BookId) -> Result<Guarded, KeyError> {
    let change = Change::<Book>::copied().add("free", -1);
    Ok(Guarded::update(key(id)?, change, Condition::AtLeast("free", number(1))))
}

pub(crate) fn put_back(id: &BookId) -> Result<Guarded, KeyError> {
    Ok(Guarded::update(key(id)?, Change::<Book>::copied().add("free", 1), Condition::Exists))
}
