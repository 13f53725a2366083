//! A small shop that has items of most entities. The same table requests as in the functions write
//! them.

use fixture::{TestTable, seed};
use key_schema::customer::{self, Customer, Location};
use key_schema::document::{self, Edit, Right};
use key_schema::entity::AnyEntity;
use key_schema::id::{Born, CustomerId, EntryId, OrderId, ProductId, time_of};
use key_schema::idempotency::{self, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::invoice::{self, Invoice, InvoiceCounter};
use key_schema::item::{FromItem as _, Stored};
use key_schema::leaderboard::{self, Board, Period, Rank, Tally, VIEW_SAMPLE};
use key_schema::money::Money;
use key_schema::order::open::{self, OpenOrder};
use key_schema::order::{self, Order, OrderAction, OrderStatus, PlacedOrder, Step};
use key_schema::organization::invitation::{self, Invitation, State};
use key_schema::organization::{self, Authority, Role, Team};
use key_schema::payment::{Ledger, Payment, PaymentMethod};
use key_schema::picking::{self, WaitingJob};
use key_schema::question::{self, Answer, Question, QuestionStatus};
use key_schema::region::{self, SaleRegion};
use key_schema::review::recent::{self, Month, ReviewMonth};
use key_schema::review::{self, Review};
use key_schema::sales;
use key_schema::wallet::{self, EntryKind, Transfer, WalletEntry};
use key_schema::{category, counter, follow, like, membership, product};

/// The ids of the shop's orders: a pending order that the customer placed, and a paid and shipped
/// order that staff placed.
pub const PENDING: &str = "0159f8e6-ea80-7111-9111-000000000001";
pub const PAID: &str = "0159f8e6-ea80-7111-9111-000000000002";

/// An order at a picking station, and a waiting order.
pub const PICKED: [&str; 2] = ["0159f8e6-ea80-7111-9111-000000000003", "0159f8e6-ea80-7111-9111-000000000004"];

fn id(id: &str) -> CustomerId {
    CustomerId::new(id).unwrap()
}

fn tea() -> ProductId {
    ProductId::new("tea").unwrap()
}

fn claim(key: &str, now: Instant) -> key_schema::request::Guarded {
    let scope = Scope { caller: "staff".to_owned(), key: key.to_owned() };
    let answer = StoredResponse::Body { status: 201, body: "{}".to_owned() };
    idempotency::claim(&seed::stored(seed::idempotency_record(scope, answer, now)), now).unwrap()
}

/// Fills a table with a shop.
pub async fn fill(table: &TestTable) {
    people(table).await;
    catalogue(table).await;
    orders(table).await;
    money(table).await;
    club(table).await;
    texts(table).await;
    derived(table).await;
}

async fn people(table: &TestTable) {
    for name in ["ann", "bob"] {
        table.sign_up(name).await;
    }
    let settled = Customer {
        place: Some(Location { country: "CH".to_owned(), city: "Bern".to_owned() }),
        ..seed::customer("cleo")
    };
    table.transact(&customer::create(&seed::stored(settled)).unwrap()).await;
    let follow = follow::Follow { customer_id: id("ann"), followed_id: id("bob") };
    table.transact(&follow::put(&seed::stored(follow)).unwrap()).await;
}

async fn catalogue(table: &TestTable) {
    let (top, below) = (seed::path(&["DRINKS"]), seed::path(&["DRINKS", "TEA"]));
    let nodes = [top, below].map(|path| seed::stored(category::CategoryNode::new(path)));
    table.own().batch_write(&category::add(&nodes).unwrap()).await.unwrap();
    for name in ["tea", "milk"] {
        table.sell(seed::product(name, seed::usd(129)), 50).await;
    }
    for name in ["ann", "bob"] {
        let data = like::Like { customer_id: id(name), product_id: tea() };
        table.transact(&like::put(&seed::stored(data)).unwrap()).await;
    }
    let sampled = (0..).map(|number| format!("request-{number}")).find(|id| VIEW_SAMPLE.of(id) == 0).unwrap();
    let view = leaderboard::view(&tea(), &sampled, Instant::now()).unwrap();
    table.transact(&view.unwrap()).await;
    for (name, rating) in [("ann", 5), ("bob", 2)] {
        let data = Review {
            product_id: tea(),
            customer_id: id(name),
            rating,
            display_name: Some(name.to_owned()),
            title: "Tea".to_owned(),
            text: "As tea should be.".to_owned(),
        };
        let review = seed::stored(data);
        let month = seed::stored(ReviewMonth { month: Month::of(review.meta.created_at) });
        let _ = table.own().write(&recent::add_month(&month).unwrap()).await.unwrap();
        table.transact(&review::create(&review).unwrap()).await;
    }
    let stored = table.own().get(&product::read_for_update(&tea()).unwrap()).await.unwrap().unwrap();
    let further = seed::path(&["SUMMER"]);
    table.transact(&membership::add(&stored, &further, None, &seed::born(), Instant::now()).unwrap()).await;
    let name = "views".parse().unwrap();
    table.transact(&counter::add(&name, 0, 5, None, Instant::now()).unwrap()).await;
    let split = counter::split(&name, None, counter::Reason::Asked, Instant::now()).unwrap().unwrap();
    table.own().update(&split).await.unwrap().unwrap();
    table.transact(&counter::add(&name, 1, 5, None, Instant::now()).unwrap()).await;
}

fn head(order: &str, number: u64) -> Stored<Order> {
    let now = time_of(order).unwrap();
    let data = Order::new(order.parse().unwrap(), id("ann"), now, seed::usd(258), 2);
    let reference = Some(format!("basket-{number}").parse().unwrap());
    Stored::new(Order { reference, ..data }, seed::born(), now)
}

fn placed(order: Stored<Order>, by: &str) -> PlacedOrder {
    let line = |number, name| Stored {
        meta: order.meta.clone(),
        data: seed::line(&order.id, number, ProductId::new(name).unwrap()),
    };
    let lines = vec![line(1, "tea"), line(2, "milk")];
    PlacedOrder::new(order, lines, by)
}

async fn orders(table: &TestTable) {
    let now = Instant::now();
    let mut own = head(PENDING, 1);
    (own.data.by_customer, own.data.lapses_at) = (true, Some(now.plus_seconds(3_600)));
    let entry = open::enter(&own, OpenOrder { most: 1, lines: 2 }, None).unwrap();
    let with = [(OrderAction::Open, entry)];
    table.transact(&order::place(&placed(own, "ann"), &with).unwrap()).await;
    table.transact(&order::place(&placed(head(PAID, 2), "s"), &[]).unwrap()).await;
    for to in [OrderStatus::Paid, OrderStatus::Picking, OrderStatus::Shipped] {
        let stored = stored_order(table, PAID).await;
        let (id, at) = ("pay1".parse().unwrap(), Instant::now());
        let payment = Payment::received(id, &stored, PaymentMethod::Manual, stored.total, at, "s");
        let mut money = Ledger::new(&stored, &[], &[], at);
        money.add(payment).unwrap();
        let step = Step {
            carrier: (to == OrderStatus::Shipped).then(|| "Post".to_owned()),
            money: (to == OrderStatus::Paid).then_some(&money),
            ..Step::new(&stored, &[], to, Instant::now(), "s")
        };
        table.transact(&order::transition(step).unwrap()).await;
    }
    picked(table).await;
    let stored = stored_order(table, PAID).await;
    let data = Invoice {
        number: 1,
        order_id: stored.id.clone(),
        customer_id: stored.customer_id.clone(),
        total: stored.total,
        issued_at: now,
    };
    table.transact(&invoice::issue(&seed::stored(data), &stored, None::<&Stored<InvoiceCounter>>).unwrap()).await;
}

/// Lets two more paid orders wait for a picking station. The first order gets a station.
async fn picked(table: &TestTable) {
    for (number, id) in (3..).zip(PICKED) {
        table.transact(&order::place(&placed(head(id, number), "s"), &[]).unwrap()).await;
        let stored = stored_order(table, id).await;
        let (payment, at) = (format!("pay{number}").parse().unwrap(), Instant::now());
        let mut money = Ledger::new(&stored, &[], &[], at);
        money.add(Payment::received(payment, &stored, PaymentMethod::Manual, stored.total, at, "s")).unwrap();
        let step = Step { money: Some(&money), ..Step::new(&stored, &[], OrderStatus::Paid, at, "s") };
        table.transact(&order::transition(step).unwrap()).await;
        let job = seed::stored(WaitingJob { order_id: stored.id.clone() });
        table.transact(&picking::wait(&job).unwrap()).await;
    }
    let first: OrderId = PICKED[0].parse().unwrap();
    table.transact(&picking::admit(&first, 1, &seed::born(), Instant::now()).unwrap()).await;
}

pub async fn stored_order(table: &TestTable, order: &str) -> Stored<Order> {
    let order: OrderId = order.parse().unwrap();
    table.own().get(&order::head(&order).unwrap()).await.unwrap().unwrap()
}

async fn money(table: &TestTable) {
    let now = Instant::now();
    let entry = WalletEntry {
        customer_id: id("ann"),
        id: EntryId::generate(now, [1; 10]),
        amount: 900,
        currency: key_schema::money::Currency::USD,
        kind: EntryKind::Deposit,
        at: now,
        counterparty: None,
        order_id: None,
        note: None,
    };
    table.transact(&wallet::deposit(&entry, None, claim("deposit", now)).unwrap()).await;
    let stored = table.own().get(&wallet::read_for_update(&id("ann")).unwrap()).await.unwrap().unwrap();
    let euros = WalletEntry { currency: "EUR".parse().unwrap(), id: EntryId::generate(now, [2; 10]), ..entry };
    table.transact(&wallet::deposit(&euros, Some(&stored), claim("euros", now)).unwrap()).await;
    let transfer = Transfer {
        id: EntryId::generate(now, [3; 10]),
        from: id("ann"),
        to: id("bob"),
        money: Money::new(300, euros.currency),
        note: None,
        at: now,
    };
    table.transact(&wallet::transfer(&transfer, claim("transfer", now), true).unwrap()).await;
}

async fn club(table: &TestTable) {
    let now = Instant::now();
    table.found("chess", "ann").await;
    let organization = "chess".parse().unwrap();
    let team = Team { organization_id: organization, id: "a".parse().unwrap(), members: 0, name: "A".to_owned() };
    table.transact(&organization::create_team(&seed::stored(team), Authority::Staff).unwrap()).await;
    let mut member = seed::stored(seed::member("chess", "bob", Role::Member));
    member.data.team = Some("a".parse().unwrap());
    table.transact(&organization::put_member(None, &member, Authority::Staff).unwrap()).await;
    let founder = organization::member(&"chess".parse().unwrap(), &id("ann")).unwrap();
    let founder = table.own().get(&founder).await.unwrap().unwrap();
    let invitation = Invitation {
        id: "chess".parse().unwrap(),
        customer_id: id("cleo"),
        title: "Club".to_owned(),
        role: Role::Member,
        team: None,
        inviter: id("ann"),
        inviter_born: founder.meta.born,
        expires_at: now.plus_seconds(invitation::LIFETIME_SECONDS),
    };
    let (invitation, admin) = (seed::stored(invitation), id("ann"));
    let head = table.own().get(&organization::head(&"chess".parse().unwrap()).unwrap()).await.unwrap().unwrap();
    let invite = invitation::invite(&head, &State::default(), &invitation, &admin).unwrap();
    table.transact(&invite).await;
}

async fn texts(table: &TestTable) {
    let now = Instant::now();
    let asked = Question {
        id: "0159f8e6-ea80-7111-9111-00000000000a".parse().unwrap(),
        customer_id: id("ann"),
        status: QuestionStatus::Open,
        answer_count: 0,
        title: "Ice?".to_owned(),
        text: "Is there ice?".to_owned(),
    };
    let asked = seed::stored(asked);
    table.transact(&question::ask(&asked, None).unwrap()).await;
    let answer = Answer {
        id: "0159f8e6-ea80-7111-9111-00000000000b".parse().unwrap(),
        question_id: asked.id.clone(),
        by: id("s"),
        text: "Yes.".to_owned(),
    };
    table.transact(&question::answer(&asked, &seed::stored(answer), None).unwrap()).await;
    table.write(seed::document("rules", "ann", None, &[("Aim", "To win."), ("Place", "Bern")])).await;
    let rules = "rules".parse().unwrap();
    let stored = || async { table.own().get(&document::get(&rules).unwrap()).await.unwrap().unwrap() };
    let (ann, born) = (id("ann"), Born::new("edit").unwrap());
    let old = stored().await;
    let edit = Edit { old: &old, right: Right::Own(&ann), by: &ann, at: now, born: &born };
    let (put, _) = document::put_section(edit, &"Aim".parse().unwrap(), "To play.".to_owned()).unwrap();
    table.transact(&put).await;
    let old = stored().await;
    let edit = Edit { old: &old, right: Right::Own(&ann), by: &ann, at: now, born: &born };
    table.transact(&document::begin_draft(edit).unwrap().0).await;
    let old = stored().await;
    let edit = Edit { old: &old, right: Right::Own(&ann), by: &ann, at: now, born: &born };
    let (put, _) = document::put_section(edit, &"Place".parse().unwrap(), "Basel".to_owned()).unwrap();
    table.transact(&put).await;
    let old = stored().await;
    table.transact(&document::add_editor(&old, &id("bob"), Right::Own(&ann), &born, now).unwrap()).await;
}

/// Derives data from the shop's changes, as the stream's consumer does.
pub async fn derived(table: &TestTable) {
    for order in [PENDING, PAID, PICKED[0], PICKED[1]] {
        let head = stored_order(table, order).await;
        let lines = table.own().query(&order::lines(&head.id).unwrap()).await.unwrap().items;
        let seen: sales::Derived =
            table.own().query(&sales::derived(&head.id).unwrap()).await.unwrap().items.into_iter().collect();
        let place = SaleRegion::of(&head, None, region::store_of(&head));
        for transaction in sales::apply(&head, &lines, &seen, place, Instant::now()).unwrap() {
            table.transact(&transaction).await;
        }
    }
    for item in [table.items("PRODUCT#").await, table.items("STOCK#").await].concat() {
        let copy = match AnyEntity::from_item(item).unwrap() {
            AnyEntity::Stock(stock) => product::copy_stock(&stock).unwrap(),
            AnyEntity::ReviewStats(stats) => product::copy_rating(&stats).unwrap(),
            AnyEntity::LikeCount(likes) => {
                let parts = table.own().query(&like::sum(&likes.product_id).unwrap()).await.unwrap().items;
                let counts = parts.iter().map(|part| (&part.meta, i64::try_from(part.likes).unwrap()));
                leaderboard::store_rank(&Rank::sum(Board::Likes, &likes.product_id, Period::All, counts).unwrap())
                    .unwrap()
            }
            _ => continue,
        };
        let _ = table.own().write(&copy).await.unwrap();
    }
    for item in table.items("TALLY#").await {
        let AnyEntity::Tally(count) = AnyEntity::from_item(item).unwrap() else { continue };
        let (board, product) = (count.board, &count.product_id);
        let Period::Day(day) = count.period else {
            let sum = Rank::sum(board, product, count.period, [(&count.meta, count.count)]).unwrap();
            let _ = table.own().write(&leaderboard::store_rank(&sum).unwrap()).await.unwrap();
            continue;
        };
        let days = table.own().query(&leaderboard::days(board, product, day).unwrap()).await.unwrap().items;
        for period in [count.period, Period::week(day)] {
            let is_part = |day: &&Stored<Tally>| day.period == count.period || period != count.period;
            let parts = days.iter().filter(is_part).map(|part| (&part.meta, part.count));
            let sum = Rank::sum(board, product, period, parts).unwrap();
            let _ = table.own().write(&leaderboard::store_rank(&sum).unwrap()).await.unwrap();
        }
    }
}
