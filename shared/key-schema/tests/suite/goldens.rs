//! Tests of the golden items: the complete stored item of each entity.

use std::collections::{BTreeMap, BTreeSet};

use key_schema::entity::AnyEntity;
use key_schema::idempotency::StoredResponse;
use key_schema::index::{GSI1, GSI2, GSI3, INDEXES};
use key_schema::item::{
    Entity, FromItem as _, Item, RESERVED, Stored, entity_name, index_entry_size, is_reserved, key_of,
};
use key_schema::key::Index;
use key_schema::leaderboard::Period;
use key_schema::order::OrderStatus;
use key_schema::organization::Role;
use key_schema::payment::PaymentMethod;
use key_schema::question::QuestionStatus;
use serde_dynamo::AttributeValue;

use crate::support::{assert_same, at, item_json, parse_item};
use crate::world::World;

pub struct Golden {
    pub name: &'static str,
    pub entity: AnyEntity,
    pub item: Item,
    /// The entity's own attributes: no keys, and no attributes that every item has.
    own: BTreeSet<String>,
}

impl Golden {
    fn of<T: Entity>(name: &'static str, stored: Stored<T>, any: fn(Stored<T>) -> AnyEntity) -> Self {
        let own: Item = serde_dynamo::to_item(&stored.data).unwrap();
        let own = own.inner().keys().cloned().collect();
        Self { name, item: stored.to_item().unwrap(), own, entity: any(stored) }
    }

    pub fn is_in(&self, index: Index) -> bool {
        self.item.contains_key(index.partition_attribute())
    }
}

fn with<T>(mut stored: Stored<T>, change: impl FnOnce(&mut T)) -> Stored<T> {
    change(&mut stored.data);
    stored
}

pub fn goldens(world: &World) -> Vec<Golden> {
    AREAS.iter().flat_map(|(_, goldens)| goldens(world)).collect()
}

/// The golden items of an area of the schema.
type Area = (&'static str, fn(&World) -> Vec<Golden>);

const AREAS: [Area; 7] = [
    ("catalogue", catalogue),
    ("community", community),
    ("content", content),
    ("customers", customers),
    ("operations", operations),
    ("orders", orders),
    ("payments", payments),
];

fn catalogue(world: &World) -> Vec<Golden> {
    use AnyEntity as Any;
    vec![
        Golden::of("Product", world.product(), Any::Product),
        Golden::of("Product-retired", world.retired_product(), Any::Product),
        Golden::of("Product-unshipped", world.unshipped_product(), Any::Product),
        Golden::of("Product-variant", world.variant_product(), Any::Product),
        Golden::of("Product-parent", world.parent_product(), Any::Product),
        Golden::of("Product-pictured", world.pictured_product(), Any::Product),
        Golden::of("Variant", world.variant(), Any::Variant),
        Golden::of(
            "Variant-pictured",
            with(world.variant(), |variant| variant.thumbnail = Some(world.media.clone())),
            Any::Variant,
        ),
        Golden::of("Stock", world.stock(), Any::Stock),
        Golden::of("Stock-revived", world.revived_stock(), Any::Stock),
        Golden::of("ReviewStats", world.review_stats(), Any::ReviewStats),
        Golden::of("ProductSales", world.product_sales(), Any::ProductSales),
        Golden::of("ProductCategories", world.product_categories(), Any::ProductCategories),
        Golden::of("Membership", world.membership(false), Any::Membership),
        Golden::of("Membership-retired", world.membership(true), Any::Membership),
        Golden::of(
            "Membership-pictured",
            with(world.membership(false), |member| member.thumbnail = Some(world.media.clone())),
            Any::Membership,
        ),
        Golden::of("Review", world.review(), Any::Review),
        Golden::of(
            "Review-named",
            with(world.review(), |review| review.display_name = Some("Ann from Ulm".to_owned())),
            Any::Review,
        ),
        Golden::of("Tally", world.tally(Period::day(at("2017-02-01T09:00:00.000Z"))), Any::Tally),
        Golden::of("Tally-all", world.tally(Period::All), Any::Tally),
        Golden::of("Rank", world.rank(17), Any::Rank),
        Golden::of("Rank-zero", world.rank(0), Any::Rank),
        Golden::of("RecentReview", world.recent_review(), Any::RecentReview),
        Golden::of(
            "RecentReview-named",
            with(world.recent_review(), |entry| entry.display_name = Some("Ann from Ulm".to_owned())),
            Any::RecentReview,
        ),
        Golden::of("ReviewMonth", world.review_month(), Any::ReviewMonth),
        Golden::of("CategoryNode", world.category_node(), Any::CategoryNode),
        Golden::of("CategoryNode-moving", world.moving_category_node(), Any::CategoryNode),
        Golden::of("CategoryMove", world.category_move(), Any::CategoryMove),
        Golden::of("CategoryAbout", world.category_about(), Any::CategoryAbout),
    ]
}

fn community(world: &World) -> Vec<Golden> {
    use AnyEntity as Any;
    vec![
        Golden::of("Follow", world.follow(), Any::Follow),
        Golden::of("Like", world.like(), Any::Like),
        Golden::of("LikeCount", world.like_count(), Any::LikeCount),
        Golden::of("Organization", world.organization(), Any::Organization),
        Golden::of("Team", world.team(), Any::Team),
        Golden::of("Member", world.member(Role::Admin), Any::Member),
        Golden::of("Invitation", world.invitation(), Any::Invitation),
        Golden::of("Invitations", world.invitations(), Any::Invitations),
        Golden::of("Question", world.question(QuestionStatus::Open), Any::Question),
        Golden::of("Question-answered", world.question(QuestionStatus::Answered), Any::Question),
        Golden::of("CustomerQuestion", world.customer_question(), Any::CustomerQuestion),
        Golden::of("Answer", world.answer(), Any::Answer),
    ]
}

fn content(world: &World) -> Vec<Golden> {
    use AnyEntity as Any;
    vec![
        Golden::of("ProductContent", world.content(), Any::ProductContent),
        Golden::of("ProductContent-large", world.large_content(), Any::ProductContent),
        Golden::of("ProductPictures", world.pictures(), Any::ProductPictures),
        Golden::of("UnsettledObject", world.unsettled(false), Any::UnsettledObject),
        Golden::of("UnsettledObject-doomed", world.unsettled(true), Any::UnsettledObject),
        Golden::of("Document", world.document(false), Any::Document),
        Golden::of("Document-draft", world.document(true), Any::Document),
        Golden::of("Document-discarding", world.discarding_document(), Any::Document),
        Golden::of("Document-removing", world.removed_document(), Any::Document),
        Golden::of("Document-orphaned", world.orphaned_document(), Any::Document),
        Golden::of("CustomerDocument", world.customer_document(), Any::CustomerDocument),
        Golden::of("DocumentSection", world.document_section(), Any::DocumentSection),
        Golden::of("DocumentVersion", world.document_version(false), Any::DocumentVersion),
        Golden::of("DocumentVersion-restored", world.document_version(true), Any::DocumentVersion),
    ]
}

fn customers(world: &World) -> Vec<Golden> {
    use AnyEntity as Any;
    vec![
        Golden::of("Customer", world.customer(), Any::Customer),
        Golden::of("Customer-nowhere", world.homeless(), Any::Customer),
        Golden::of("Customer-unverified", world.unverified(), Any::Customer),
        Golden::of("Customer-erasing", world.erased_customer(), Any::Customer),
        Golden::of("EmailVerification", world.verification(), Any::EmailVerification),
        Golden::of("Customer-of-8-shards", world.customer_of_eight_shards(), Any::Customer),
        Golden::of("EmailVerification-used", world.used_verification(), Any::EmailVerification),
        Golden::of("EmailClaim", world.email_claim(), Any::EmailClaim),
        Golden::of("UsernameClaim", world.username_claim(), Any::UsernameClaim),
        Golden::of("Session", world.session(), Any::Session),
        Golden::of("Session-of-staff", world.session_without_sign_in(), Any::Session),
        Golden::of("Revocation", world.revocation(), Any::Revocation),
        Golden::of("Erasure", world.erasure(), Any::Erasure),
        Golden::of("QuotaDay", world.quota_day(), Any::QuotaDay),
        Golden::of("QuotaDay-data-pages", with(world.quota_day(), |day| day.data_pages = 3), Any::QuotaDay),
        Golden::of("QuotaDay-reviews", with(world.quota_day(), |day| day.reviews = 3), Any::QuotaDay),
        Golden::of("QuotaDay-promotions", with(world.quota_day(), |day| day.promotion_codes = 3), Any::QuotaDay),
        Golden::of("QuotaDay-transfers", with(world.quota_day(), |day| day.transfers = 3), Any::QuotaDay),
    ]
}

fn operations(world: &World) -> Vec<Golden> {
    use AnyEntity as Any;
    vec![
        Golden::of("Heartbeat", world.heartbeat(), Any::Heartbeat),
        Golden::of(
            "IdempotencyRecord",
            world.idempotency_record(StoredResponse::Order(world.order.clone())),
            Any::IdempotencyRecord,
        ),
        Golden::of(
            "IdempotencyRecord-body",
            world.idempotency_record(StoredResponse::Body { status: 200, body: r#"{"stock":5}"#.into() }),
            Any::IdempotencyRecord,
        ),
        Golden::of("Mark", world.mark(), Any::Mark),
        Golden::of("Mail", world.mail(), Any::Mail),
        Golden::of("MailDay", world.mail_day(), Any::MailDay),
        Golden::of("MailStop", world.mail_stop(), Any::MailStop),
        Golden::of("Expiration", world.expiration(true), Any::Expiration),
        Golden::of("Expiration-ownerless", world.expiration(false), Any::Expiration),
        Golden::of("MetricPoint", world.metric_point(), Any::MetricPoint),
        Golden::of("Counter", world.counter_head(), Any::Counter),
        Golden::of("CounterShard", world.counter_shard(), Any::CounterShard),
        Golden::of("Settings", world.settings(), Any::Settings),
        Golden::of("Settings-lists", world.settings_of_growing_lists(), Any::Settings),
    ]
}

fn orders(world: &World) -> Vec<Golden> {
    use AnyEntity as Any;
    vec![
        Golden::of("CustomerOrder", world.customer_order(false), Any::CustomerOrder),
        Golden::of("CustomerOrder-shipped", world.customer_order(true), Any::CustomerOrder),
        Golden::of("CustomerOrder-retired", world.retired_customer_order(), Any::CustomerOrder),
        Golden::of("CustomerOrder-addressed", world.addressed_customer_order(), Any::CustomerOrder),
        Golden::of("Order-addressed", world.addressed_order(), Any::Order),
        Golden::of("OrderAddresses", world.order_addresses(), Any::OrderAddresses),
        Golden::of("OrderAddresses-retired", world.retired_order_addresses(), Any::OrderAddresses),
        Golden::of("Cart", world.cart(), Any::Cart),
        Golden::of("GuestCart", world.guest_cart(false), Any::GuestCart),
        Golden::of("GuestCart-claimed", world.guest_cart(true), Any::GuestCart),
        Golden::of("Pricing", world.pricing(), Any::Pricing),
        Golden::of("ShippingZone", world.shipping_zone(), Any::ShippingZone),
        Golden::of("ShippingZone-regional", world.regional_zone(), Any::ShippingZone),
        Golden::of("TaxRule", world.tax_rule(), Any::TaxRule),
        Golden::of("TaxRule-regional", world.regional_tax_rule(), Any::TaxRule),
        Golden::of("Promotion", world.promotion(), Any::Promotion),
        Golden::of("Promotion-automatic", world.automatic_promotion(), Any::Promotion),
        Golden::of("PromotionCode", world.promotion_code(), Any::PromotionCode),
        Golden::of("PromotionUses", world.promotion_uses(), Any::PromotionUses),
        Golden::of("CustomerUses", world.customer_uses(), Any::CustomerUses),
        Golden::of("Order-taxed-shipping", world.order_with_taxed_shipping(), Any::Order),
        Golden::of("Order-promotions", world.order_with_promotions(), Any::Order),
        Golden::of("Store", world.shop(), Any::StoreLocation),
        Golden::of("SalePlace", world.sale_region(false), Any::SaleRegion),
        Golden::of("SalePlace-reversed", world.sale_region(true), Any::SaleRegion),
        Golden::of("PlaceSales", world.region_sales(), Any::RegionSales),
        Golden::of("Order", world.order(OrderStatus::Pending), Any::Order),
        Golden::of("Order-placing", world.order(OrderStatus::Placing), Any::Order),
        Golden::of("Order-returning", world.returning_order(), Any::Order),
        Golden::of("Order-refunded", world.refunded_order(), Any::Order),
        Golden::of("Order-own", world.own_order(OrderStatus::Pending), Any::Order),
        Golden::of(
            "Order-lapsed",
            with(world.own_order(OrderStatus::Cancelled), |order| order.lapsed = true),
            Any::Order,
        ),
        Golden::of("Order-of-8-shards", world.order_of_eight_shards(), Any::Order),
        Golden::of("OpenOrders", world.open_orders(), Any::OpenOrders),
        Golden::of("Invoice", world.invoice(), Any::Invoice),
        Golden::of("InvoiceCounter", world.invoice_counter(), Any::InvoiceCounter),
        Golden::of("Order-retired", world.retired_order(), Any::Order),
        Golden::of("OrderLine", world.order_line(), Any::OrderLine),
        Golden::of("OrderLine-discounts", world.order_line_with_discounts(), Any::OrderLine),
        Golden::of("OrderLine-quoted", world.quoted_order_line(), Any::OrderLine),
        Golden::of("Order-quoted", world.quoted_order(), Any::Order),
        Golden::of("OrderStatusEvent", world.status_event(), Any::OrderStatusEvent),
        Golden::of("OrderLog", world.order_log(), Any::OrderLog),
        Golden::of("OrderLog-of-8-shards", world.log_of_eight_shards(), Any::OrderLog),
        Golden::of("ReferenceClaim", world.reference_claim(), Any::ReferenceClaim),
        Golden::of("ReferenceClaim-own", world.own_reference_claim(), Any::ReferenceClaim),
        Golden::of("Sale", world.sale(false), Any::Sale),
        Golden::of("Sale-ranked", world.ranked_sale(), Any::Sale),
        Golden::of("Sale-reversed", world.sale(true), Any::Sale),
        Golden::of("PickingStations", world.stations(true), Any::PickingStations),
        Golden::of("PickingStations-free", world.stations(false), Any::PickingStations),
        Golden::of("WaitingJob", world.waiting_job(), Any::WaitingJob),
    ]
}

fn payments(world: &World) -> Vec<Golden> {
    use AnyEntity as Any;
    vec![
        Golden::of("Payment", world.order_payment(PaymentMethod::Wallet), Any::Payment),
        Golden::of(
            "Payment-refunded",
            with(world.order_payment(PaymentMethod::Manual), |payment| payment.refunded = 100),
            Any::Payment,
        ),
        Golden::of("Wallet", world.wallet(), Any::Wallet),
        Golden::of("Wallet-currencies", world.wallet_of_two_currencies(), Any::Wallet),
        Golden::of("WalletEntry", world.wallet_entry(), Any::WalletEntry),
        Golden::of("WalletEntry-payment", world.payment(), Any::WalletEntry),
    ]
}

/// Returns the golden item with this name, from [`World::plain`].
pub fn golden(name: &str) -> Golden {
    goldens(&World::plain())
        .into_iter()
        .find(|golden| golden.name == name)
        .unwrap_or_else(|| panic!("no golden item {name}"))
}

#[test]
fn each_entity_is_stored_as_its_golden_item() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (area, goldens) in AREAS {
            let items = goldens(&World::plain());
            let items: Vec<String> =
                items.iter().map(|golden| format!("{} {}", golden.name, item_json(&golden.item))).collect();
            insta::assert_snapshot!(area, items.join("\n\n"));
        }
    });
}

#[test]
fn every_entity_has_a_golden_item() {
    let shown: BTreeSet<String> =
        goldens(&World::plain()).iter().map(|golden| entity_name(&golden.item).unwrap().to_owned()).collect();
    let all: BTreeSet<String> = AnyEntity::NAMES.iter().map(ToString::to_string).collect();
    assert_same(&shown, &all);
}

#[test]
fn a_golden_item_decodes_to_its_entity() {
    for golden in goldens(&World::plain()) {
        let read = parse_item(&item_json(&golden.item));
        assert_eq!(read, golden.item, "{}", golden.name);
        assert_eq!(AnyEntity::from_item(read).unwrap(), golden.entity, "{}", golden.name);
    }
}

#[test]
fn no_two_entities_share_a_key() {
    let mut seen = BTreeSet::new();
    for golden in goldens(&World::plain()).iter().filter(|golden| !golden.name.contains('-')) {
        let key = key_of(&golden.item).unwrap();
        assert!(seen.insert(key.clone()), "{} has the key of another item: {key:?}", golden.name);
    }
}

#[test]
fn no_field_of_an_entity_shadows_an_attribute_of_the_schema() {
    for golden in goldens(&World::plain()) {
        let shadowed: Vec<&String> = golden.own.iter().filter(|name| is_reserved(name)).collect();
        assert!(shadowed.is_empty(), "{} shadows {shadowed:?}", golden.name);
    }
    let attributes = INDEXES.iter().flat_map(|index| [index.partition_attribute(), index.sort_attribute()]);
    for reserved in RESERVED.into_iter().chain(attributes) {
        let refused = std::panic::catch_unwind(|| key_schema::item::assert_not_reserved(&["name", reserved])).is_err();
        assert!(refused, "{reserved} is not reserved");
    }
    key_schema::item::assert_not_reserved(&["names", "Version", "PK2", "TTL"]);
}

#[test]
fn an_item_outside_a_sparse_index_has_no_key_in_it() {
    let in_indexes = |name: &str| INDEXES.into_iter().filter(|index| golden(name).is_in(*index)).collect::<Vec<_>>();
    assert_eq!((in_indexes("Product"), in_indexes("Product-retired")), (vec![GSI2], vec![]));
    assert_eq!((in_indexes("Order"), in_indexes("Order-placing")), (vec![GSI2], vec![GSI1]));
    assert_eq!(in_indexes("Order-returning"), [GSI1, GSI2]);
    assert_eq!((in_indexes("Order-own"), in_indexes("Order-lapsed")), (vec![GSI2, GSI3], vec![GSI2]));
    assert_eq!((in_indexes("Order-retired"), in_indexes("CustomerOrder-retired")), (vec![], vec![]));
    assert_eq!((in_indexes("Sale"), in_indexes("Sale-reversed")), (vec![GSI1, GSI3], vec![]));
    assert_eq!((in_indexes("Rank"), in_indexes("Rank-zero")), (vec![GSI2], vec![]));
    assert_eq!(in_indexes("Customer"), [GSI2, GSI3]);
    assert_eq!(in_indexes("Customer-nowhere"), [GSI2]);
    assert_eq!((in_indexes("Question"), in_indexes("Question-answered")), (vec![GSI2], vec![]));
    assert_eq!((in_indexes("CustomerOrder"), in_indexes("CustomerOrder-shipped")), (vec![], vec![GSI3]));
}

#[test]
fn an_index_key_is_stored_whole_or_not_at_all() {
    for golden in goldens(&World::plain()) {
        for index in INDEXES {
            let half = golden.is_in(index) != golden.item.contains_key(index.sort_attribute());
            assert!(!half, "{} has only a part of the key of {}", golden.name, index.name());
            assert_eq!(index_entry_size(&golden.item, index).is_some(), golden.is_in(index));
        }
    }
}

/// Technique F10 in `docs/patterns.md`: a key `STATUS#paid` without a shard would send the writes
/// of all paid orders to one partition. The test makes the golden items of 64 [`World`]s, which
/// differ only in their ids. So the items of one kind must be in several partitions of each index.
/// The exception is a category tree. Its nodes share a partition, so that a page of a subtree is
/// one Query.
#[test]
fn no_index_partition_is_named_by_a_low_cardinality_value_alone() {
    let mut partitions: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for number in 0..64 {
        for golden in goldens(&World::numbered(number)) {
            for index in INDEXES.into_iter().filter(|index| golden.is_in(*index)) {
                let AttributeValue::S(partition) = &golden.item[index.partition_attribute()] else {
                    panic!("not a string")
                };
                partitions.entry((golden.name, index.name())).or_default().insert(partition.clone());
            }
        }
    }
    let few: Vec<_> = partitions.iter().filter(|(_, partitions)| partitions.len() < 4).collect();
    let trees = [("CategoryNode", GSI2.name()), ("CategoryNode-moving", GSI2.name())];
    assert_eq!(few.iter().map(|(list, _)| **list).collect::<Vec<_>>(), trees, "{few:?}");
}

#[test]
fn only_items_that_expire_have_a_time_to_live_and_it_is_in_seconds() {
    for golden in goldens(&World::plain()) {
        let expected = match &golden.entity {
            // Tokens of the sign-in can be valid for 31 days after the expiry.
            AnyEntity::Session(session) => Some(session.expires_at.plus_seconds(31 * 24 * 60 * 60)),
            AnyEntity::Revocation(revocation) => Some(revocation.expires_at),
            AnyEntity::Cart(cart) => Some(cart.expires_at),
            AnyEntity::GuestCart(cart) => Some(cart.expires_at),
            AnyEntity::IdempotencyRecord(record) => Some(record.expires_at),
            AnyEntity::Order(order) => order.expires_at,
            AnyEntity::CustomerOrder(copy) => copy.expires_at,
            AnyEntity::OrderAddresses(addresses) => addresses.expires_at,
            AnyEntity::OpenOrders(open) => Some(open.expires_at),
            AnyEntity::Mark(mark) => Some(mark.expires_at),
            AnyEntity::Mail(mail) => Some(mail.expires_at),
            AnyEntity::Invitation(invitation) => Some(invitation.expires_at),
            // The list expires a week after the last of its invitations.
            AnyEntity::Invitations(roster) => {
                roster.open.values().map(|open| open.expires_at.plus_seconds(7 * 24 * 60 * 60)).max()
            }
            AnyEntity::MailDay(day) => Some(day.expires_at),
            AnyEntity::QuotaDay(day) => Some(day.expires_at),
            AnyEntity::EmailVerification(request) => Some(request.expires_at),
            // The days of a week expire 35 days after its end. The week expires 455 days after its
            // Monday.
            AnyEntity::Tally(tally) if tally.period != Period::All => Some(at("2017-03-13T00:00:00.000Z")),
            AnyEntity::Rank(_) => Some(at("2018-04-30T00:00:00.000Z")),
            AnyEntity::MetricPoint(point) => Some(point.at.plus_seconds(30 * 24 * 60 * 60)),
            _ => None,
        };
        let expected = expected.map(|at| AttributeValue::N((at.as_millis() / 1000).to_string()));
        assert_eq!(golden.item.get("ttl"), expected.as_ref(), "{}", golden.name);
    }
}
