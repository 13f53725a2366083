//! Tests of the rules that entities apply without the table: lifetimes, stock, names, prefixes.

use key_schema::archive;
use key_schema::cart::{self, CartLine};
use key_schema::category::relocation::{self, CategoryMove};
use key_schema::code::CodeKeys;
use key_schema::entity::AnyEntity;
use key_schema::guest_cart;
use key_schema::id::{Born, CustomerId, OrganizationId};
use key_schema::idempotency;
use key_schema::instant::Instant;
use key_schema::item::{CAUSE, Entity as _, FromItem as _, MAX_ITEM_BYTES, Stored, size};
use key_schema::mail;
use key_schema::media::{self, MediaKind};
use key_schema::membership::{self, Membership};
use key_schema::metric::{self, Untimely};
use key_schema::money::saturating;
use key_schema::order::staged::{GIVEN_BACK_AT_ONCE, RESERVED_AT_ONCE, UNDONE_AT_ONCE};
use key_schema::order::{
    MAX_QUANTITY, Order, OrderLine, OrderNumber, OrderNumberError, OrderStatus, PlacedOrder, RETURNED_AT_ONCE,
};
use key_schema::organization::Role;
use key_schema::organization::invitation::{MAX_OF_CUSTOMER, MAX_OF_INVITER, OpenInvitation};
use key_schema::payment::PaymentMethod;
use key_schema::product::{Availability, CategoryPath, MAX_STOCK, StockError};
use key_schema::quota::Quota;
use key_schema::region::{self, Month, RegionPath};
use key_schema::request::Write;
use key_schema::review::recent::RecentReview;
use key_schema::review::{self, Review};
use key_schema::sales::{self, Derived, SaleSummary};
use key_schema::session;
use key_schema::settings::Known;
use key_schema::text::Email;
use key_schema::verification::EmailVerification;
use serde_dynamo::AttributeValue;
use serde_json::json;

use crate::support::at;
use crate::world::World;

#[test]
fn an_item_is_expired_from_the_instant_of_its_expiry() {
    let cart = World::plain().cart();
    let expiry = cart.expires().unwrap();
    assert!(cart.is_expired(expiry));
    assert!(!cart.is_expired(expiry.plus_millis(-1)));
    let session = World::plain().session();
    assert!(!session.is_active(session.expires_at));
    assert!(session.is_active(session.expires_at.plus_millis(-1)));
    assert!(!World::plain().product().is_expired(expiry));
}

#[test]
fn a_code_is_valid_for_ten_minutes_and_a_response_is_replayed_for_a_day() {
    let (world, now) = (World::plain(), at("2017-02-01T09:00:00.000Z"));
    let (profile, first) = (world.customer(), world.verification());
    let made = |previous| {
        EmailVerification::next(previous, &profile, ("n".into(), "k1"), profile.meta.born.clone(), now).unwrap()
    };
    assert_eq!(made(None).code_expires_at, at("2017-02-01T09:10:00.000Z"));
    let next = made(Some(&first));
    assert_eq!((next.meta.version, next.meta.rev), (first.meta.version + 1, first.meta.rev + 1));
    assert_eq!(idempotency::LIFETIME_SECONDS, 86_400);
}

#[test]
fn a_revived_stock_belongs_only_to_the_product_with_the_born_that_it_stores() {
    let world = World::plain();
    let (own, other) = (world.product().meta.born, Born::generate(at("2017-02-01T09:00:00.000Z"), [3; 10]));
    assert_ne!(own, other);
    let revived = world.revived_stock();
    assert_eq!([&own, &other].map(|born| revived.is_of(born)), [true, false]);
    let first = world.stock();
    assert_eq!([&own, &other].map(|born| first.is_of(born)), [true; 2]);
}

#[test]
fn an_adjusted_stock_stays_between_zero_and_the_maximum() {
    let mut stock = World::plain().stock().data;
    stock.available = MAX_STOCK - 1;
    assert_eq!((stock.moved(1), stock.moved(2)), (Ok(MAX_STOCK), Err(StockError::TooLarge)));
    stock.available = 1;
    assert_eq!((stock.moved(-1), stock.moved(-2)), (Ok(0), Err(StockError::Insufficient)));
}

#[test]
fn the_old_path_of_a_moved_category_is_found_from_its_new_path() {
    let path = |names: &[&str]| CategoryPath::new(names.iter().map(ToString::to_string).collect()).unwrap();
    let moving = CategoryMove::new(path(&["A", "B"]), path(&["C"]), at("2017-02-01T09:00:00.000Z"));
    let (before, after) = (path(&["A", "B", "D"]), path(&["C", "D"]));
    assert_eq!(moving.destination(&before).as_ref(), Some(&after));
    assert_eq!(moving.source(&after).as_ref(), Some(&before));
    assert_eq!((moving.destination(&after), moving.source(&before)), (None, None));
}

/// A category's list shows the product's version from the membership. One transaction moves both
/// the product and the membership, so the membership needs the version that the product gets.
#[test]
fn a_membership_that_moves_with_its_product_has_the_products_next_version() {
    let (world, now) = (World::plain(), at("2017-02-01T09:00:00.000Z"));
    let (product, mut known) = (world.product(), world.product_categories());
    let from = product.category_path.clone();
    let below = CategoryPath::new(from.names().iter().cloned().chain(["BELOW".to_owned()]).collect()).unwrap();
    known.data.paths = vec![below];
    let to = CategoryPath::new(vec!["ELSEWHERE".to_owned()]).unwrap();
    let moving = Stored::new(CategoryMove::new(from, to, now), product.meta.born.clone(), now);
    let transfer = relocation::transfer(&moving, &product, &known, now).unwrap().unwrap();
    let put = transfer.actions().iter().find_map(|(_, action)| match &action.write {
        Write::Put { item } => Some(Stored::<Membership>::from_item(item.clone()).unwrap()),
        _ => None,
    });
    assert_eq!(put.unwrap().meta.version, product.meta.version + 1);
}

#[test]
fn only_the_actions_with_the_given_label_are_left_out_of_a_transaction() {
    let world = World::plain();
    let whole = session::create(&world.session()).unwrap();
    let labels: Vec<_> = whole.actions().iter().map(|(label, _)| *label).collect();
    for label in &labels {
        let rest = session::create(&world.session()).unwrap().without(label);
        let rest: Vec<_> = rest.actions().iter().map(|(label, _)| *label).collect();
        let expected: Vec<_> = labels.iter().copied().filter(|other| other != label).collect();
        assert_eq!(rest, expected);
    }
}

#[test]
fn the_sales_of_one_shop_are_read_from_one_shard_and_the_online_sales_from_all_shards() {
    let month: Month = "2017-02".parse().unwrap();
    let shards = |path: &str| {
        let path: RegionPath = path.parse().unwrap();
        region::sales("US", &month, Some(&path)).unwrap().partitions().len()
    };
    assert_eq!((shards("unknown~364"), shards("unknown~online"), shards("unknown")), (1, 64, 64));
    assert!("unknown~364~2017-02-28".parse::<RegionPath>().is_ok());
    for day in ["2017-02-30", "2017-2-28", "day"] {
        assert!(format!("unknown~364~{day}").parse::<RegionPath>().is_err(), "{day}");
    }
    assert!("2017-13".parse::<Month>().is_err());
}

#[test]
fn known_settings_have_the_version_and_values_of_the_copy_that_was_read() {
    let stored = World::plain().settings();
    let known = Known::from(stored.clone());
    let Stored { meta, data } = stored;
    assert_eq!(known, Known { version: meta.version, values: data.values, private: data.private, lists: data.lists });
    assert_ne!(known, Known::default());
}

#[test]
fn an_erasure_finds_the_archived_sessions_of_a_customer() {
    let world = World::plain();
    let session = world.session();
    let key = session.key().unwrap();
    let [sessions, carts] = archive::belongings(&world.customer).unwrap();
    assert!(archive::objects(&AnyEntity::Session(session), &key).unwrap().starts_with(&sessions));
    let cart = world.cart();
    let key = cart.key().unwrap();
    assert!(archive::objects(&AnyEntity::Cart(cart), &key).unwrap().starts_with(&carts));
}

#[test]
fn the_limits_of_open_invitations_apply_to_a_new_invitation_but_not_to_a_renewed_one() {
    let (world, now) = (World::plain(), at("2026-12-01T12:00:00.000Z"));
    let inviter = CustomerId::new("household-1").unwrap();
    let mut list = world.invitations().data;
    let organization = |n: usize| OrganizationId::new(format!("club-{n}")).unwrap();
    list.open = (0..MAX_OF_CUSTOMER)
        .map(|n| {
            let by = CustomerId::new(format!("household-{}", n / MAX_OF_INVITER)).unwrap();
            (organization(n), OpenInvitation::new(at("2026-12-04T12:00:00.000Z"), &by))
        })
        .collect();
    let (known, new) = (organization(MAX_OF_INVITER), organization(MAX_OF_CUSTOMER));
    assert!(list.has_room(&known, now) && list.has_room_for(&inviter, &known, now));
    assert!(!list.has_room(&new, now) && !list.has_room_for(&inviter, &new, now));
    assert!(list.has_room_for(&CustomerId::new("another").unwrap(), &new, now));
    let later = at("2026-12-04T12:00:00.000Z");
    assert!(list.has_room(&new, later) && list.has_room_for(&inviter, &new, later));
}

/// A transaction has at most 100 actions. With fewer lines in each transaction, an order would take
/// more transactions.
#[test]
fn each_step_of_a_large_order_takes_as_many_lines_as_fit_a_transaction() {
    assert_eq!((RESERVED_AT_ONCE, UNDONE_AT_ONCE, GIVEN_BACK_AT_ONCE), (49, 42, 99));
}

#[test]
fn roles_quotas_and_statuses_have_the_names_of_the_api() {
    assert_eq!(Role::ALL.map(|role| role.to_string()), ["admin", "member"]);
    assert_eq!(
        Quota::ALL.map(|quota| (quota.name(), quota.limit())),
        [
            ("checkouts", 10_000),
            ("codes", 3),
            ("data_pages", 1_000),
            ("documents", 1_000),
            ("guest_codes", 10_000),
            ("organizations", 100),
            ("promotion_codes", 50),
            ("questions", 200),
            ("reviews", 200),
            ("sessions", 1_000),
            ("transfers", 10_000)
        ]
    );
    assert_eq!(
        OrderStatus::VISIBLE.map(|status| status.to_string()).join(" "),
        "pending paid picking shipped delivered cancelled returned"
    );
    let keys = CodeKeys::new("new:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").unwrap();
    assert!(format!("{keys:?}").contains("new"));
    let error = saturating(json!("12")).unwrap_err().to_string();
    assert!(error.contains("expected an amount"), "{error}");
}

#[test]
fn the_count_of_placed_orders_restarts_on_a_new_day() {
    let mut open = World::plain().open_orders();
    (open.data.day, open.data.placed) = ("2017-02-01".into(), 7);
    assert_eq!(open.placed_on_day(at("2017-02-01T23:59:59.999Z")), 7);
    assert_eq!(open.placed_on_day(at("2017-02-02T00:00:00.000Z")), 0);
    // An instant of the previous day does not reset the count.
    assert_eq!(open.placed_on_day(at("2017-01-31T23:59:59.999Z")), 7);
}

#[test]
fn a_mailable_address_is_one_plain_address_of_ascii() {
    for plain in ["a@b", "zoe.m+tea@example.com", "o'hara@example.co.uk"] {
        assert!(plain.parse::<Email>().unwrap().is_mailable(), "{plain}");
    }
    for odd in [
        "zo\u{eb}@example.com",
        "a,b@example.com",
        "a:b@example.com",
        "<a@example.com",
        "a@b.",
        "a@.b",
        "a@b..c",
        "=?utf-8?q?a=40b.example=3e=20?=c@example.com",
    ] {
        assert!(!odd.parse::<Email>().unwrap().is_mailable(), "{odd}");
    }
}

#[test]
fn a_day_has_86400_seconds_and_a_mail_record_stays_35_days() {
    assert_eq!(at("2017-02-01T00:00:00.000Z").seconds_left_of_day(), 86_400);
    assert_eq!(at("2017-02-01T23:59:59.999Z").seconds_left_of_day(), 1);
    assert_eq!(mail::LIFETIME_SECONDS, 3_024_000);
}

#[test]
fn an_object_is_named_by_its_kind_and_belongs_to_the_item_with_its_id() {
    let world = World::plain();
    let (picture, note) = (world.picture(), world.unsettled(false));
    let name = |kind: MediaKind| kind.pending(&world.product, &picture.object.id);
    assert!(name(MediaKind::Picture).contains("/picture/"), "{}", name(MediaKind::Picture));
    assert!(name(MediaKind::Content).contains("/content/"), "{}", name(MediaKind::Content));
    let content = world.large_content();
    let mut own = note.data.clone();
    own.id = content.file.as_ref().unwrap().id.clone();
    let mut other = own.clone();
    other.id = "01901640-0000-7000-8000-000000000000".parse().unwrap();
    let item = media::Reference::ProductContent(content);
    assert!(media::is_reference(&item, &own) && !media::is_reference(&item, &other));
}

#[test]
fn memberships_show_the_name_and_price_of_a_product_but_not_its_copied_stock() {
    let old = World::plain().product();
    let mut new = old.clone();
    new.meta.rev += 1;
    new.data.copied.in_stock = !new.data.copied.in_stock;
    assert!(!membership::shows(&old, &new));
    new.data.name.push('!');
    assert!(membership::shows(&old, &new));
}

#[test]
fn a_point_is_too_old_after_30_days_and_a_stock_is_low_below_its_threshold() {
    let now = at("2017-02-01T09:00:00.000Z");
    let oldest = now.plus_seconds(-30 * 86_400).plus_millis(1);
    assert_eq!(metric::check_time(oldest, now), Ok(()));
    assert_eq!(metric::check_time(oldest.plus_millis(-1), now), Err(Untimely::TooOld));
    let levels = [0, 1, 9, 10].map(|pieces| Availability::of(pieces, 10));
    assert_eq!(levels, [Availability::None, Availability::Low, Availability::Low, Availability::Plenty]);
}

#[test]
fn a_retired_event_expires_with_its_order() {
    let mut event = World::plain().status_event();
    assert_eq!(event.expires(), None);
    let end = at("2027-01-01T00:00:00.000Z");
    event.data.expires_at = Some(end);
    assert_eq!(event.expires(), Some(end));
}

/// If an item would be too large with the request's id, it is stored without the id.
#[test]
fn a_put_has_the_id_of_its_request_if_the_item_then_has_at_most_400_kb() {
    let id = "r".repeat(20);
    let added = CAUSE.len() + id.len();
    for (room, expected) in [(added, true), (added - 1, false)] {
        let mut put = cart::create(&World::plain().cart(), Instant::EPOCH).unwrap().guarded().clone();
        let Write::Put { item } = &mut put.write else { panic!("not a put") };
        let length = MAX_ITEM_BYTES - room - size(item) - "text".len();
        item.inner_mut().insert("text".to_owned(), AttributeValue::S("a".repeat(length)));
        assert_eq!(size(item), MAX_ITEM_BYTES - room);
        let Write::Put { item } = put.caused_by(Some(&id)).write else { panic!("not a put") };
        assert_eq!(item.contains_key(CAUSE), expected, "{room}");
    }
}

#[test]
fn a_place_is_written_as_one_segment_of_a_url() {
    let place = World::plain().customer().data.place.unwrap();
    assert!(place.to_segment().starts_with(place.country.as_str()), "{}", place.to_segment());
    assert!(place.to_segment().contains('~'), "{}", place.to_segment());
}

#[test]
fn the_sales_of_the_largest_order_take_transactions_of_24_lines() {
    let world = World::plain();
    let head = world.order(OrderStatus::Delivered);
    let lines: Vec<_> = (1..=500)
        .map(|line| Stored { data: OrderLine { line, ..world.order_line().data }, meta: world.order_line().meta })
        .collect();
    let transactions =
        sales::apply(&head, &lines, &Derived::default(), world.sale_region(false).data, head.meta.updated_at).unwrap();
    let sizes: Vec<usize> = transactions.iter().map(|transaction| transaction.actions().len()).collect();
    assert!(sizes.iter().all(|size| *size <= 100), "{sizes:?}");
    assert_eq!(sizes.len(), 500_usize.div_ceil(24), "{sizes:?}");
}

/// Everybody may write guest carts, and each write is billed by the size of the whole item.
#[test]
fn a_line_of_the_largest_guest_cart_costs_six_write_units() {
    let mut cart = World::plain().guest_cart(false);
    let line = CartLine { quantity: MAX_QUANTITY, added_at: at("2026-11-25T10:00:00.000Z") };
    let ids = (0..guest_cart::MAX_LINES).map(|number| format!("{number:0128}").parse().unwrap());
    cart.data.lines = ids.map(|id| (id, line.clone())).collect();
    assert_eq!(size(&cart.to_item().unwrap()).div_ceil(1024), 6);
}

#[test]
fn the_sort_key_of_a_sale_is_its_instant_and_its_order_id() {
    let sale = World::plain().sale(false);
    let summary = SaleSummary {
        order_id: sale.order_id.clone(),
        placed_at: sale.placed_at,
        quantity: sale.quantity,
        total: sale.total,
    };
    assert_eq!(summary.sort_key(), format!("{}#{}", sale.placed_at, sale.order_id));
}

#[test]
fn a_code_verifies_only_the_address_for_which_it_was_requested() {
    let verification = World::plain().verification();
    let now = verification.code_expires_at.plus_millis(-1);
    assert_eq!(verification.open_nonce(&verification.email, now), verification.nonce.as_deref());
    assert_eq!(verification.open_nonce(&verification.email, now.plus_millis(1)), None);
    assert_eq!(verification.open_nonce(&"other@example.com".parse().unwrap(), now), None);
}

#[test]
fn the_copy_of_a_changed_review_has_the_next_version_and_revision_of_the_review() {
    let review = World::plain().review();
    let new = Review { rating: 1, display_name: Some("Ann".to_owned()), ..review.data.clone() };
    let change = review::change(&review, &new, at("2017-03-01T09:00:00.000Z")).unwrap();
    let copy = change.actions().iter().find_map(|(_, action)| match &action.write {
        Write::Put { item } => Some(Stored::<RecentReview>::from_item(item.clone()).unwrap()),
        _ => None,
    });
    let meta = copy.unwrap().meta;
    assert_eq!((meta.version, meta.rev), (review.meta.version + 1, review.meta.rev + 1));
}

#[test]
fn a_repeated_request_gets_the_order_as_it_was_placed() {
    let world = World::plain();
    let placed = PlacedOrder::new(world.own_order(OrderStatus::Pending), vec![world.order_line()], "c1");
    let mut later = placed.clone();
    later.head.meta.version = 5;
    later.head.data.status = OrderStatus::Cancelled;
    later.head.data.invoice_number = Some(4711);
    (later.head.data.refunded, later.head.data.lapsed) = (774, true);
    later.history.push(world.status_event());
    later.payments.push(world.order_payment(PaymentMethod::Wallet));
    let mut first = placed;
    first.head.meta.version = 1;
    assert_eq!(later.as_placed(), first);
}

/// What the order would have to take again may be gone, or is not known.
#[test]
fn an_order_that_cannot_take_everything_again_is_not_paid_late() {
    let world = World::plain();
    let lapsed = || Order { lapsed: true, ..world.own_order(OrderStatus::Cancelled).data };
    assert!(lapsed().may_revive());
    let counted = |per_customer: bool| {
        let mut charges = world.order_with_promotions().data.charges;
        for used in charges.iter_mut().flat_map(|charges| &mut charges.promotions) {
            (used.counted, used.counted_per_customer) = (!per_customer, per_customer);
        }
        charges
    };
    for (why, order) in [
        ("cancelled by a person", Order { lapsed: false, ..lapsed() }),
        ("pending", Order { status: OrderStatus::Pending, ..lapsed() }),
        ("retired", Order { expires_at: Some(world.expiry()), ..lapsed() }),
        ("its stock is returning", Order { unfinished: world.returning_order().data.unfinished, ..lapsed() }),
        ("too large", Order { line_count: RETURNED_AT_ONCE as u64 + 1, ..lapsed() }),
        ("a limited promotion", Order { charges: counted(false), ..lapsed() }),
        ("a promotion limited for each customer", Order { charges: counted(true), ..lapsed() }),
    ] {
        assert!(!order.may_revive(), "{why}");
    }
}

#[test]
fn the_instants_of_an_orders_steps_increase_also_if_a_clock_is_behind() {
    let world = World::plain();
    let mut order = PlacedOrder::new(world.order(OrderStatus::Pending), Vec::new(), "c1");
    order.history.push(world.status_event());
    let last = world.status_event().at;
    for (now, next) in [(-1, 1), (0, 1), (1, 1), (2, 2)] {
        assert_eq!(order.next_step_at(last.plus_millis(now)), last.plus_millis(next), "{now}");
    }
}

/// The same numbers come from an independent computation: seven digits of FNV-1a to the base 29, and
/// the check character.
#[test]
fn the_number_of_an_order_follows_from_its_id() {
    for (id, number) in [
        ("0190163d-8694-739b-aea5-966c26f8ad91", "QX5D-8XTB"),
        ("019aa136-7c00-7aaa-8bbb-000000000201", "7NEW-6RWP"),
        ("o1", "3FA2-M8E2"),
    ] {
        assert_eq!(OrderNumber::of(&id.parse().unwrap()).to_string(), number);
        assert_eq!(number.to_lowercase().replace('-', " ").parse(), Ok(OrderNumber::of(&id.parse().unwrap())));
    }
}

#[test]
fn a_wrong_character_or_an_exchange_of_two_is_never_the_number_of_another_order() {
    let number: Vec<char> = "QX5D8XTB".chars().collect();
    let read = |number: &[char]| number.iter().collect::<String>().parse::<OrderNumber>();
    assert!(read(&number).is_ok());
    for at in 0..number.len() {
        for character in "23456789ABCDEFGHJKMNPQRTVWXYZ".chars().filter(|character| *character != number[at]) {
            let mut wrong = number.clone();
            wrong[at] = character;
            assert_eq!(read(&wrong), Err(OrderNumberError::Check), "{wrong:?}");
        }
        for other in at + 1..number.len() {
            let mut wrong = number.clone();
            wrong.swap(at, other);
            assert_eq!(read(&wrong).is_ok(), number[at] == number[other], "{wrong:?}");
        }
    }
    for text in ["", "QX5D-8XT", "QX5D-8XTBB", "QX5D-8XT0", "QX5D-8XTÄ", "QX5D_8XTB"] {
        assert_eq!(text.parse::<OrderNumber>(), Err(OrderNumberError::Form), "{text}");
    }
}
