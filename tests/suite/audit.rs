//! Expired items are removed from the table. Each appears once in the archive and once in the
//! audit.

use key_schema::archive;
use key_schema::entity::AnyEntity;
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Item, Meta, Stored};
use key_schema::revocation;
use key_schema::session::Session;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::shop::path;
use crate::support::table::scan;
use crate::support::{drain, put_item, shop, with_own_system};

/// Removes expired items, as DynamoDB does, and returns their number.
pub async fn sweep(system: &System) -> u64 {
    let swept = Call::new("POST", "/_local/ttl-sweep").send(system).await.expect(200).body;
    swept["removed"].as_u64().unwrap()
}

/// Returns the audit entries of the days on which this test can run.
async fn audit(system: &System, since: Instant) -> Vec<Json> {
    let mut entries = Vec::new();
    let mut days = vec![since.day(), Instant::now().day()];
    days.dedup();
    for day in days {
        let query = Call::new("GET", &format!("/v1/audit/expirations?limit=100&day={day}"));
        let page = query.staff().send(system).await.expect(200).body;
        entries.extend(page["items"].as_array().unwrap().iter().cloned());
    }
    entries
}

async fn archived(system: &System) -> Vec<Json> {
    crate::control::all(system, "/_local/archive").await
}

/// Stores a session that DynamoDB may remove, because it expired long ago.
async fn ended_session(system: &System, id: &str, now: Instant) {
    let session = Session {
        sign_in: None,
        id: id.parse().unwrap(),
        customer_id: "audit-ann".parse().unwrap(),
        expires_at: now.plus_seconds(-60 - revocation::LIFETIME_SECONDS),
        device: "Laptop".into(),
    };
    let born = format!("born-{id}").parse().unwrap();
    // The session starts after the customer's creation, because the archive skips earlier sessions.
    let session = Stored { meta: Meta::new(born, Instant::now()), data: session };
    put_item(system, &serde_json::to_value(session.to_item().unwrap()).unwrap()).await;
}

#[test]
fn an_expired_session_is_archived_and_audited_once_and_an_ended_session_is_not() {
    with_own_system(async |system| {
        let now = Instant::now();
        shop::customer(system, "audit-ann").await;
        ended_session(system, "audit-ended", now).await;
        let signed_in = path(&["customers", "audit-ann", "sessions"]);
        let left = Call::new("POST", &signed_in).customer("audit-ann").json(&json!({"device": "Phone"}));
        let left = left.send(system).await.expect(201).body["id"].as_str().unwrap().to_owned();
        let end = Call::new("DELETE", &path(&["sessions", &left])).customer("audit-ann");
        end.send(system).await.expect(204);
        assert_eq!(sweep(system).await, 1);
        drain(system).await;
        drain(system).await;

        let entries = audit(system, now).await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!((&entries[0]["entity"], &entries[0]["removed_by"]), (&json!("Session"), &json!("ttl")));
        let archived = archived(system).await;
        assert_eq!(archived.len(), 1, "{archived:?}");
        assert_eq!(archived[0]["name"], entries[0]["archive"]);
        assert_eq!(archived[0]["content"]["item"]["id"], json!({"S": "audit-ended"}));
        assert!(!archived[0].to_string().contains(&left));
    });
}

#[test]
fn case_32_a_crash_between_archive_and_audit_leaves_one_object_and_one_entry() {
    with_own_system(async |system| {
        let now = Instant::now();
        shop::customer(system, "audit-ann").await;
        for point in ["stream.audit.archived", "stream.audit.recorded"] {
            let crash = json!({"target": "function:StreamEvents", "kind": "crash", "point": point, "count": 1});
            let armed = Call::new("POST", "/_local/faults").json(&crash).send(system).await;
            assert!(armed.status < 300, "{}", armed.body);
            ended_session(system, point, now).await;
            assert_eq!(sweep(system).await, 1);
            drain(system).await;
            let faults = Call::new("GET", "/_local/faults").send(system).await.expect(200).body;
            assert_eq!(faults["function:StreamEvents"][0]["fired"], 1, "{point}: {faults}");
            Call::new("DELETE", "/_local/faults").send(system).await;
        }
        assert_eq!((archived(system).await.len(), audit(system, now).await.len()), (2, 2));
    });
}

/// Returns the item in an archive object as a restore would write it.
fn restored(object: &Json, now: Instant) -> Json {
    let item: Item = serde_json::from_value(object["content"]["item"].clone()).unwrap();
    let entity = archive::restored(item, now, now.plus_seconds(3_600)).unwrap();
    serde_json::to_value(entity.to_item().unwrap()).unwrap()
}

#[test]
fn a_retired_order_is_removed_when_it_expires_and_can_be_restored_from_the_archive() {
    with_own_system(async |system| {
        let now = Instant::now();
        shop::customer(system, "audit-bob").await;
        shop::products(system, &["audit-tea", "audit-jam"], 10).await;
        let lines = [("audit-tea", 1), ("audit-jam", 2)];
        let placed = shop::order(system, "audit-bob", &lines, "audit-order").await;
        let placed = shop::moved(system, placed, &["paid", "picking", "shipped", "delivered"]).await;
        let id = placed["id"].as_str().unwrap().to_owned();
        let (whole, log) = (path(&["orders", &id]), path(&["orders", &id, "log"]));
        let own = ["orders", "shipments"].map(|list| path(&["customers", "audit-bob", list]));
        let overview = path(&["customers", "audit-bob", "overview"]);
        let read = async || Call::new("GET", &whole).customer("audit-bob").send(system).await;
        let note = async || Call::new("POST", &log).staff().json(&json!({"text": "old"})).send(system).await.status;
        let shown = async |path: &str| {
            Call::new("GET", path).staff().send(system).await.expect(200).body.to_string().contains(&id)
        };
        let before = read().await.expect(200).body;
        drain(system).await;

        // The lists by status and the lists of shipments no longer contain a retired order. Until
        // it expires, clients can read it by id, and its customer's other lists contain it. Its
        // status cannot change.
        retire(system, &id, now.plus_seconds(3_600)).await;
        assert!(!shown("/v1/orders?status=delivered").await && !shown(&own[1]).await);
        assert!(shown(&own[0]).await && shown(&overview).await);
        let mut retired = before.clone();
        retired["next_statuses"] = json!([]);
        assert_eq!(read().await.expect(200).body, retired);
        let returned = shop::step(&before, "returned").staff().send(system).await;
        assert_eq!((returned.status, returned.code()), (409, "illegal_transition"));
        assert_eq!(note().await, 201);
        drain(system).await;
        assert_eq!(found(system, &id).await, 0);
        // The order has expired, but its items are still in the table.
        retire(system, &id, now.plus_seconds(-60)).await;
        read().await.expect(404);
        assert!(!shown(&own[0]).await && !shown(&overview).await);
        shop::step(&before, "returned").staff().send(system).await.expect(404);
        Call::new("GET", &log).staff().send(system).await.expect(404);
        assert_eq!(note().await, 404);
        assert!(sweep(system).await >= 10);
        drain(system).await;
        read().await.expect(404);
        assert_eq!(found(system, &id).await, 0);

        let entries = audit(system, now).await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(entries[0]["entity"], "Order");
        let objects = archived(system).await;
        let mut kinds: Vec<&str> = objects.iter().map(|object| object["content"]["entity"].as_str().unwrap()).collect();
        kinds.sort_unstable();
        let mut parts = vec!["CustomerOrder", "Order", "OrderLine", "OrderLine"];
        parts.extend(["OrderStatusEvent"; 5]);
        parts.push("Payment");
        assert_eq!(kinds, parts);

        for object in &objects {
            put_item(system, &restored(object, now)).await;
        }
        drain(system).await;
        let after = read().await.expect(200).body;
        for same in ["id", "status", "lines", "history", "payments", "total", "placed_at"] {
            assert_eq!(after[same], before[same], "{same}");
        }
        for list in ["/v1/orders?status=delivered", &own[0], &own[1], &overview] {
            assert!(shown(list).await, "{list}");
        }
        assert_eq!(found(system, &id).await, 1, "a restored order outranks its tombstone");
        let events = crate::control::all(system, "/_local/events").await;
        let placed = events.iter().filter(|event| event["type"] == "OrderPlaced");
        assert_eq!(placed.count(), 1, "a restored order is not placed again");
    });
}

/// Returns how many orders the search finds for an id.
async fn found(system: &System, id: &str) -> u64 {
    let call = Call::new("GET", &format!("/v1/search/orders?q={id}"));
    call.staff().send(system).await.expect(200).body["total"].as_u64().unwrap()
}

/// Sets this expiry on all items of an order, as the order's retirement does.
async fn retire(system: &System, id: &str, expires_at: Instant) {
    for item in scan(system).await.into_values() {
        let item: Item = serde_json::from_value(item).unwrap();
        let mut entity = AnyEntity::from_item(item).unwrap();
        let meta = match &mut entity {
            AnyEntity::Order(Stored { meta, data }) if data.id.as_str() == id => {
                data.expires_at = Some(expires_at);
                meta
            }
            AnyEntity::CustomerOrder(Stored { meta, data }) if data.id.as_str() == id => {
                data.expires_at = Some(expires_at);
                meta
            }
            AnyEntity::OrderLine(Stored { meta, data }) if data.order_id.as_str() == id => {
                data.expires_at = Some(expires_at);
                meta
            }
            AnyEntity::OrderStatusEvent(Stored { meta, data }) if data.order_id.as_str() == id => {
                data.expires_at = Some(expires_at);
                meta
            }
            AnyEntity::Payment(Stored { meta, data }) if data.order_id.as_str() == id => {
                data.expires_at = Some(expires_at);
                meta
            }
            _ => continue,
        };
        meta.rev += 1;
        put_item(system, &serde_json::to_value(entity.to_item().unwrap()).unwrap()).await;
    }
}
