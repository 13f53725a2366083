//! A session of the library on an embedded table: `cargo run -p bodega-library --example session`.

#![allow(clippy::unwrap_used)]

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use emulators::table::EmbeddedTable;
use item_model::cursor::Cursors;
use item_model::instant::Instant;
use library::loan::LOAN_SECONDS;
use library::member::Email;
use library::schema::create_table;
use library::{Library, LibraryError};
use table::Table;

/// A key for sealing cursors. A real product uses its own key and keeps it secret.
const CURSOR_KEYS: &str = "test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let embedded = EmbeddedTable::start(None).unwrap();
    let library = open(&client(embedded.url()), "library").await;
    for line in session(&library, Instant::now()).await.unwrap() {
        println!("{line}");
    }
}

pub fn client(endpoint: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("library", "local", None, None, "example"))
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::standard())
        .http_client(aws::connector().unwrap());
    Client::from_conf(config.build())
}

/// Creates a table and opens the library over it.
pub async fn open(client: &Client, name: &str) -> Library {
    create_table(client, name).await.unwrap();
    Library::new(Table::new(client.clone(), name.to_owned()), Cursors::new(CURSOR_KEYS).unwrap())
}

/// Uses each access pattern, and returns the lines of output.
pub async fn session(library: &Library, now: Instant) -> Result<Vec<String>, LibraryError> {
    let mut lines = Vec::new();
    let mut say = |line: String| lines.push(line);
    let (ann_email, bob_email) = (Email::new("ann@example.com").unwrap(), Email::new("bob@example.com").unwrap());
    let ann = library.register(ann_email, "Ann", now).await?;
    let bob = library.register(bob_email.clone(), "Bob", now).await?;
    say(format!("{} and {} are members.", ann.name, bob.name));
    if let Err(error) = library.change_email(&ann, bob_email, now).await {
        say(format!("Ann cannot take Bob's address: {error}."));
    }
    library.change_email(&ann, Email::new("ann@library.example").unwrap(), now).await?;
    let ann = library.rename(&library.member(&ann.id).await?, "Ann Lee", now).await?;
    say(format!("Ann is now {}, with the address {}.", ann.name, ann.email));

    library.add_book("The Waves", "Virginia Woolf", 2, now).await?;
    let emma = library.add_book("Emma", "Jane Austen", 1, now).await?;
    let books = library.books(10, None, now).await?;
    let titles: Vec<String> = books.items.into_iter().map(|book| book.title).collect();
    say(format!("The books are {}.", titles.join(", ")));

    let loan = library.lend(&ann.id, &emma.id, now).await?;
    say(format!("{} has a copy of {}, and {} are free.", ann.name, emma.title, library.book(&emma.id).await?.free));
    if let Err(error) = library.lend(&bob.id, &emma.id, now).await {
        say(format!("Bob cannot borrow it: {error}."));
    }
    let then = now.plus_seconds(20 * 24 * 60 * 60);
    library.renew(&ann.id, &loan.id, then).await?;
    say("Ann renews her loan on day 20.".to_owned());
    let later = now.plus_seconds(2 * LOAN_SECONDS);
    let (hers, overdue) = (library.loans(&ann.id, 10, None, later).await?, library.overdue(10, None, later).await?);
    say(format!("On day 56 Ann has {} book, and {} is overdue.", hers.items.len(), overdue.items.len()));
    library.give_back(&ann.id, &loan.id, later).await?;
    let overdue = library.overdue(10, None, later).await?;
    say(format!("Ann returns it, and {} are overdue.", overdue.items.len()));
    Ok(lines)
}
