//! Tests of the projections: an index projects all attributes that its lists show, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use key_schema::category::relocation;
use key_schema::index::INDEXES;
use key_schema::item::{FromItem, Item};
use key_schema::key::{Index, MAX_PROJECTED, MAX_PROJECTED_TOTAL};
use key_schema::pattern::Pattern;
use key_schema::registry;
use key_schema::{
    category, customer, document, erasure, follow, leaderboard, like, media, order, organization, payment, product,
    question, residence, review, sales, session, webhook_delivery,
};

use crate::goldens::golden;
use crate::support::assert_same;

/// A list: its pattern, and the projected attributes that its view needs.
struct List {
    pattern: &'static Pattern,
    needed: BTreeSet<&'static str>,
}

/// Reads a golden item as `V` from the attributes that the pattern's index projects.
fn list<V: FromItem + Debug + PartialEq>(pattern: &'static Pattern, name: &str) -> List {
    let (golden, index) = (golden(name), pattern.index.unwrap());
    assert!(golden.is_in(index), "{name} is not in {}", index.name());
    let whole = V::from_item(golden.item.clone()).unwrap();
    let from_index = |without: Option<&str>| V::from_item(entry(&golden.item, index, without));
    assert_eq!(from_index(None).unwrap(), whole, "{} loses a shown attribute", pattern.id);
    let needed = index.projected().iter().copied().filter(|name| from_index(Some(name)).ok().as_ref() != Some(&whole));
    List { pattern, needed: needed.collect() }
}

fn entry(item: &Item, index: Index, without: Option<&str>) -> Item {
    let keys = ["PK", "SK", index.partition_attribute(), index.sort_attribute()];
    let carried = keys.iter().chain(index.projected()).filter(|name| Some(**name) != without);
    let attributes = carried.filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
    Item::from(attributes.collect::<std::collections::HashMap<_, _>>())
}

fn lists() -> Vec<List> {
    vec![
        list::<customer::CustomerSummary>(&customer::BY_TIER, "Customer"),
        list::<customer::CustomerSummary>(&customer::ALL, "Customer"),
        list::<session::SessionSummary>(&session::ACTIVE, "Session"),
        list::<session::SessionSummary>(&session::OF_CUSTOMER, "Session"),
        list::<document::Removal>(&document::REMOVALS, "Document-removing"),
        list::<customer::CustomerSummary>(&customer::ERASING, "Customer-erasing"),
        list::<erasure::Pending>(&erasure::PENDING, "Erasure"),
        list::<product::ProductSummary>(&product::IN_CATEGORY, "Product"),
        list::<product::ProductSummary>(&product::IN_CATEGORY, "Membership"),
        list::<category::CategoryBelow>(&category::SUBTREE, "CategoryNode"),
        list::<product::ProductSummary>(&relocation::LISTED, "Product"),
        list::<product::ProductSummary>(&relocation::LISTED, "Membership"),
        list::<review::ReviewSummary>(&review::NEWEST, "Review-named"),
        list::<review::ReviewSummary>(&review::BEST, "Review-named"),
        list::<review::ReviewSummary>(&review::BY_CUSTOMER, "Review-named"),
        list::<order::ListedOrder>(&order::BY_STATUS, "Order"),
        list::<question::QuestionSummary>(&question::OPEN, "Question"),
        list::<order::Shipment>(&order::SHIPMENTS, "CustomerOrder-shipped"),
        list::<order::LogLine>(&order::LOG, "OrderLog"),
        list::<order::daily_log::LoggedLine>(&order::daily_log::OF_DAY, "OrderLog"),
        list::<order::staged::UnfinishedOrder>(&order::staged::UNFINISHED, "Order-placing"),
        list::<order::open::LapsingOrder>(&order::open::LAPSING, "Order-own"),
        list::<payment::UnsettledOperation>(&payment::UNSETTLED, "PaymentOperation"),
        list::<payment::ExpiringPayment>(&payment::EXPIRING, "Payment-card"),
        list::<webhook_delivery::DueDelivery>(&webhook_delivery::DUE, "WebhookDelivery"),
        list::<media::Unsettled>(&media::UNSETTLED, "UnsettledObject"),
        list::<sales::SaleSummary>(&sales::OF_PRODUCT, "Sale"),
        list::<sales::Bought>(&sales::BOUGHT, "Sale"),
        list::<residence::Resident>(&residence::OF_LOCATION, "Customer"),
        list::<follow::Follower>(&follow::FOLLOWERS, "Follow"),
        list::<leaderboard::RankEntry>(&leaderboard::TOP, "Rank"),
        list::<like::Liker>(&like::LIKERS, "Like"),
        list::<organization::MembershipSummary>(&organization::OF_CUSTOMER, "Member"),
        list::<organization::invitation::InvitationSummary>(&organization::invitation::OF_CUSTOMER, "Invitation"),
    ]
}

/// Returns each attribute of an index with the lists that need it.
pub fn readers(index: Index) -> BTreeMap<&'static str, Vec<&'static str>> {
    let lists: Vec<List> = lists().into_iter().filter(|list| list.pattern.index == Some(index)).collect();
    let readers =
        |name: &str| lists.iter().filter(|list| list.needed.contains(name)).map(|list| list.pattern.id).collect();
    index.projected().iter().map(|name| (*name, readers(name))).collect()
}

#[test]
fn every_list_over_an_index_reads_only_the_index() {
    let checked: BTreeSet<&str> = lists().iter().map(|list| list.pattern.id).collect();
    let all: BTreeSet<&str> =
        registry::all().filter(|pattern| pattern.index.is_some()).map(|pattern| pattern.id).collect();
    assert_same(&checked, &all);
}

#[test]
fn an_index_carries_only_attributes_that_a_list_shows() {
    for index in INDEXES {
        for (attribute, readers) in readers(index) {
            assert!(!readers.is_empty(), "{} carries {attribute}, which no list shows", index.name());
        }
    }
}

/// CreateTable refuses projections above these limits. The emulators do not.
#[test]
fn projections_are_within_the_limits_of_dynamodb() {
    for index in INDEXES {
        assert!(
            index.projected().len() <= MAX_PROJECTED,
            "{} carries {} attributes",
            index.name(),
            index.projected().len()
        );
        let distinct: BTreeSet<&&str> = index.projected().iter().collect();
        assert_eq!(distinct.len(), index.projected().len(), "{} names an attribute twice", index.name());
    }
    let total: usize = INDEXES.iter().map(|index| index.projected().len()).sum();
    assert!(total <= MAX_PROJECTED_TOTAL);
}
