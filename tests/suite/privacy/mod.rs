//! Tests personal data: the remaining data of an erased customer, the content of logs, and the
//! audit trail of staff.

mod logs;
mod person;
mod trail;

use std::collections::BTreeSet;

use key_schema::entity::AnyEntity;
use local::System;
use serde_json::{Value as Json, json};

use self::person::{FIELDS, FRIEND, GOES, STAYS, SUBJECT};
use crate::audit::sweep;
use crate::control::all;
use crate::support::client::{Answer, Call, http};
use crate::support::table::scan;
use crate::support::{drain, read, root, with_own_system};

/// The crash points of an erasure, in order: function and point.
const POINTS: [(&str, &str); 4] = [
    ("Customers", "customers.erasure.begun"),
    ("Customers", "customers.belongings.erased"),
    ("Customers", "customers.profile.erased"),
    ("Janitor", "janitor.archive.emptied"),
];

async fn janitor(system: &System) -> Answer {
    Call::new("POST", "/_local/invoke/Janitor").json(&json!({ "grace_seconds": 0 })).send(system).await
}

async fn arm(system: &System, (function, point): (&str, &str)) {
    let crash = json!({ "target": format!("function:{function}"), "kind": "crash", "point": point, "count": 1 });
    Call::new("POST", "/_local/faults").json(&crash).send(system).await.expect(204);
}

/// Removes expired items and waits for the consumer.
async fn swept(system: &System) {
    sweep(system).await;
    drain(system).await;
    drain(system).await;
}

/// Reads the table "What is left of an erased customer". Returns the kinds of places that keep the
/// customer's id, and the kinds that keep a text by or about the customer.
fn documented() -> (BTreeSet<String>, BTreeSet<String>) {
    let page = read(&root().join("docs/operations/privacy.md"));
    let (_, table) = page.split_once("| where | id | text |").unwrap_or_else(|| panic!("the table is not there"));
    let (mut ids, mut texts) = (BTreeSet::new(), BTreeSet::new());
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for place in cells[1].split(", ").map(|place| place.trim_matches('`').to_owned()) {
            if cells[2] == "yes" {
                ids.insert(place.clone());
            }
            if cells[3] == "yes" {
                texts.insert(place);
            }
        }
    }
    (ids, texts)
}

/// Reads the tables of "A copy of a customer's data". Returns the entities that the API returns, and
/// the other entities.
fn copied() -> (BTreeSet<String>, BTreeSet<String>) {
    let page = read(&root().join("docs/operations/privacy.md"));
    let rows = |head: &str| -> Vec<Vec<BTreeSet<String>>> {
        let (_, table) = page.split_once(head).unwrap_or_else(|| panic!("the table {head} is not there"));
        let cell = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let row = |row: &str| row.split('|').map(cell).collect();
        table.lines().skip(2).take_while(|line| line.starts_with('|')).map(row).collect()
    };
    let (mut api, mut others) = (BTreeSet::new(), BTreeSet::new());
    for row in rows("| kind | entities |") {
        api.extend(row[2].clone());
        others.extend(row[3].clone());
    }
    for row in rows("| entity | reason |") {
        others.extend(row[1].clone());
    }
    (api, others)
}

/// Reads all pages of the subject's data. Returns the names of the entities.
async fn entities_of_copy(system: &System) -> BTreeSet<String> {
    let (mut entities, mut cursor) = (BTreeSet::new(), None);
    loop {
        let query = cursor.map_or_else(String::new, |cursor: String| format!("?cursor={cursor}"));
        let page = Call::new("GET", &format!("/v1/customers/me/data{query}")).customer(SUBJECT).send(system).await;
        let page = page.expect(200).body;
        for record in page["items"].as_array().unwrap() {
            let parts = record["parts"].as_array().into_iter().flatten();
            entities.extend([record].into_iter().chain(parts).map(|one| one["entity"].as_str().unwrap().to_owned()));
        }
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return entities;
        }
    }
}

fn named(places: BTreeSet<&str>) -> BTreeSet<String> {
    places.into_iter().map(str::to_owned).collect()
}

#[test]
fn an_erasure_leaves_only_the_documented_data_of_a_customer() {
    with_own_system(async |system| {
        person::live(system).await;
        assert!(person::gains(system, FRIEND).await.iter().all(|status| (200..300).contains(status)));
        person::lapse(system, "privacy-before", false).await;
        swept(system).await;
        let before = StoredTexts::read(system).await;
        for field in FIELDS {
            let places = before.places_of(&person::goes(field));
            // Fields `first-…` have earlier values of the profile. No place keeps these values.
            assert_eq!(places.is_empty(), field.starts_with("first-"), "{field}: {places:?}");
        }
        assert_eq!(before.count("archive"), 1);
        let (copied, others) = copied();
        assert_eq!(entities_of_copy(system).await, copied, "the entities of the copy");
        let is_entity = |place: &&str| AnyEntity::NAMES.contains(place);
        let stored = &(&before.places_of(SUBJECT) | &before.places_of(GOES)) | &before.places_of(STAYS);
        let stored: BTreeSet<String> = stored.into_iter().filter(is_entity).map(str::to_owned).collect();
        let known = &copied | &others;
        let undocumented: Vec<_> = stored.difference(&known).collect();
        assert!(undocumented.is_empty(), "a copy of the customer's data lacks {undocumented:?}");
        let mails = all(system, "/_local/mail").await.len();
        assert!(mails >= 3, "{mails} messages");

        // Some items have expired but still exist, and some expire during the erasure. The erasure
        // crashes at each point.
        let tag = person::tag(system).await;
        person::lapse(system, "privacy-waiting", false).await;
        arm(system, POINTS[0]).await;
        assert!(person::erase(system, &tag).await >= 500, "the erasure is interrupted");
        // From now on no request can add items to the customer.
        assert_eq!(person::gains(system, SUBJECT).await, [404; 6]);
        arm(system, POINTS[1]).await;
        assert!(person::erase(system, &tag).await >= 500, "the erasure is interrupted");
        person::lapse(system, "privacy-meanwhile", true).await;
        swept(system).await;
        arm(system, POINTS[2]).await;
        assert!(person::erase(system, &tag).await >= 500, "the erasure is interrupted");
        assert_eq!(person::erase(system, &tag).await, 404, "the profile is already removed");
        let halfway = StoredTexts::read(system).await;
        let archived = halfway.count("archive");
        assert!(halfway.count("Erasure") == 1 && archived >= 3, "{archived} objects");
        // Items that expire after the removal of the profile are not archived.
        person::lapse(system, "privacy-late", true).await;
        swept(system).await;
        assert_eq!(StoredTexts::read(system).await.count("archive"), archived);
        arm(system, POINTS[3]).await;
        // Either this run or a scheduled run of the janitor crashes.
        janitor(system).await;
        let faults = Call::new("GET", "/_local/faults").send(system).await.expect(200).body;
        assert_eq!(faults["function:Janitor"][0]["fired"], 1, "{faults}");
        let round = janitor(system).await.expect(200).body;
        assert_eq!(round["failed"], 0, "{round}");
        person::lapse(system, "privacy-last", true).await;
        swept(system).await;

        // Idempotency records, which contain responses, still exist for a day.
        let after = StoredTexts::read(system).await;
        let answers = BTreeSet::from(["IdempotencyRecord"]);
        assert!(after.places_of(GOES).is_subset(&answers), "{:?}", after.places_of(GOES));
        assert_eq!((after.count("Erasure"), after.count("archive")), (0, 0));
        let (ids, texts) = documented();
        assert_eq!(
            named(&after.places_of(SUBJECT) | &answers),
            ids,
            "the places with ids of the customer differ from the documented places"
        );
        assert_eq!(
            named(&after.places_of(STAYS) | &answers),
            texts,
            "the places with texts of the customer differ from the documented places"
        );
        person::a_day_passes(system).await;
        swept(system).await;
        let last = StoredTexts::read(system).await;
        assert_eq!(last.places_of(GOES), BTreeSet::new());
        assert_eq!(last.count("IdempotencyRecord"), 0);
        assert!(last.len() > 60 && last.count("events") >= 3, "{} things", last.len());
        assert_eq!(all(system, "/_local/mail").await.len(), mails, "an erased customer gets no mail");
        logs::tell_nothing(system, 40).await;
    });
}

/// Names of the `/_local` lists with stored data outside of the table and the index.
const LISTS: [&str; 4] = ["archive", "events", "failures", "quarantine"];

/// Stored texts, each with the kind of its place: an item's entity, the index of a search document,
/// or a name in [`LISTS`]. Sent mails and the objects of the bucket `Media` are not included.
pub struct StoredTexts(Vec<(String, String)>);

impl StoredTexts {
    pub async fn read(system: &System) -> Self {
        let item = |item: Json| (item["entity"]["S"].as_str().unwrap().to_owned(), item.to_string().to_lowercase());
        let mut texts: Vec<(String, String)> = scan(system).await.into_values().map(item).collect();
        for collection in ["products", "orders"] {
            let url = format!("{}/{}-{collection}-v1/_search", system.search_url(), system.table());
            let query = json!({ "query": { "match_all": {} }, "size": 1000 });
            let found: Json = http().post(url).json(&query).send().await.unwrap().json().await.unwrap();
            let hits = found["hits"]["hits"].as_array().unwrap_or_else(|| panic!("{found}"));
            texts.extend(hits.iter().map(|hit| (format!("index of {collection}"), hit.to_string().to_lowercase())));
        }
        for list in LISTS {
            let things = all(system, &format!("/_local/{list}")).await;
            texts.extend(things.iter().map(|thing| (list.to_owned(), thing.to_string().to_lowercase())));
        }
        Self(texts)
    }

    pub fn places_of(&self, mark: &str) -> BTreeSet<&str> {
        self.0.iter().filter(|(_, text)| text.contains(mark)).map(|(place, _)| place.as_str()).collect()
    }

    pub fn count(&self, place: &str) -> usize {
        self.0.iter().filter(|(kind, _)| kind == place).count()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}
