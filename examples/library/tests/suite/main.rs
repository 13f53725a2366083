//! Tests of the library on the embedded table, or on the `DynamoDB` at `AWS_ENDPOINT_URL_DYNAMODB`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod books;
mod loans;
mod members;
mod migration;
mod readme;
#[path = "../../examples/session.rs"]
#[allow(dead_code)]
mod session;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use emulators::table::EmbeddedTable;
use item_model::instant::Instant;
use item_model::item::{CAUSE, Entity, Item, Stored};
use library::Library;
use library::book::Book;
use library::member::{Email, Member};

struct TestLibrary {
    library: Library,
    client: Client,
}

impl std::ops::Deref for TestLibrary {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.library
    }
}

impl TestLibrary {
    async fn open() -> Self {
        static EMBEDDED: OnceLock<EmbeddedTable> = OnceLock::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let endpoint = std::env::var("AWS_ENDPOINT_URL_DYNAMODB").ok().filter(|endpoint| !endpoint.is_empty());
        let endpoint =
            endpoint.unwrap_or_else(|| EMBEDDED.get_or_init(|| EmbeddedTable::start(None).unwrap()).url().to_owned());
        let client = session::client(&endpoint);
        let name = format!("library-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        Self { library: session::open(&client, &name).await, client }
    }

    async fn member(&self, name: &str) -> Stored<Member> {
        self.register(email(name), name, now()).await.unwrap()
    }

    async fn book_of(&self, title: &str, copies: u64) -> Stored<Book> {
        self.add_book(title, "an author", copies, now()).await.unwrap()
    }

    /// Returns the raw item with an entity's key.
    async fn raw(&self, entity: &impl Entity) -> Option<Item> {
        let key = entity.key().unwrap();
        let get = self.client.get_item().table_name(self.table().name()).consistent_read(true);
        let get = get.key("PK", AttributeValue::S(key.pk.into_string()));
        get.key("SK", AttributeValue::S(key.sk.into_string())).send().await.unwrap().item.map(Into::into)
    }

    /// Checks that the stored item equals the item that a write of the whole entity would store.
    /// The items differ if an update forgot an index key.
    async fn assert_whole<T: Entity>(&self, stored: &Stored<T>) {
        let mut raw = self.raw(&stored.data).await.unwrap();
        raw.inner_mut().remove(CAUSE);
        assert_eq!(raw, stored.to_item().unwrap());
    }
}

fn email(name: &str) -> Email {
    Email::new(format!("{name}@example.com")).unwrap()
}

fn now() -> Instant {
    "2026-03-01T09:00:00Z".parse().unwrap()
}
