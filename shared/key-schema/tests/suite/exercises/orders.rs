//! Requests for orders, invoices and sales.

use key_schema::id::EntryId;
use key_schema::idempotency::StoredResponse;
use key_schema::lists;
use key_schema::order::staged::Claims;
use key_schema::order::{Movement, OrderAction, OrderStatus, PlacedOrder, Step};
use key_schema::payment::PaymentMethod;
use key_schema::pricing::Rules;
use key_schema::promotion::Promotion;
use key_schema::sales::DerivedItem;
use key_schema::{cart, guest_cart, idempotency, invoice, order, pricing, promotion, region, sales};

use super::NOW;
use crate::rendering::{Request as _, Shown};
use crate::support::at;
use crate::world::World;

pub(super) fn guest_carts(world: &World) -> Vec<Shown> {
    let (now, cart, token) = (at(NOW), world.guest_cart(false), world.cart_token());
    let (id, product, line) = (&cart.id, &world.product, world.cart_line());
    let merged = world.cart();
    vec![
        guest_cart::get(id).unwrap().show("guest_cart::get"),
        guest_cart::create(&cart).unwrap().show("guest_cart::create"),
        guest_cart::put_line(id, &token, product, &line, now).unwrap().show("guest_cart::put_line"),
        guest_cart::remove_line(id, &token, product, now).unwrap().show("guest_cart::remove_line"),
        guest_cart::discard(id, &token).unwrap().show("guest_cart::discard"),
        guest_cart::claim(&cart, &token, &merged, None, now).unwrap().show("guest_cart::claim"),
        guest_cart::claim(&cart, &token, &merged, Some(&merged), now).unwrap().show("guest_cart::claim"),
    ]
}

pub(super) fn orders(world: &World) -> Vec<Shown> {
    let (now, id, customer) = (at(NOW), &world.order, &world.customer);
    let (pending, picking) = (world.order(OrderStatus::Pending), world.order(OrderStatus::Picking));
    let lines = [world.order_line()];
    let step = |order, to| Step::new(order, &lines, to, now, "staff-1");
    let shipped =
        Step { carrier: Some("Post".into()), tracking: Some("CH-0001".into()), ..step(&picking, OrderStatus::Shipped) };
    let cancelled = Step { note: Some("changed my mind".into()), ..step(&pending, OrderStatus::Cancelled) };
    let entry = EntryId::new("0190163d-8694-739b-aea5-966c26f8ad91").unwrap();
    let payment = world.order_payment(PaymentMethod::Wallet);
    let manual = world.order_payment(PaymentMethod::Manual);
    let paid = Step { money: Some(Movement::Payment(&payment)), ..step(&pending, OrderStatus::Paid) };
    let reported = Step { money: Some(Movement::Payment(&manual)), ..step(&pending, OrderStatus::Paid) };
    let refunded = Movement::Refund(&entry, &payment, 100);
    let undone = Step { money: Some(refunded), ..step(&picking, OrderStatus::Cancelled) };
    let claim = idempotency::claim(&world.idempotency_record(StoredResponse::Order(id.clone())), now).unwrap();
    let own = world.own_order(OrderStatus::Pending);
    let (own_paid, known) = (step(&own, OrderStatus::Paid), world.open_orders());
    let open = |known| [(OrderAction::Open, order::open::enter(&own, world.open_order(), known).unwrap())];
    let own_order = PlacedOrder::new(own.clone(), Vec::new(), customer.as_str());
    let addresses = world.order_addresses();
    let mut placed = PlacedOrder::new(pending.clone(), lines.to_vec(), customer.as_str());
    placed.addresses = Some(addresses.clone());
    let with =
        [(OrderAction::Idempotency, claim.clone()), (OrderAction::Cart, cart::check_out(&world.cart()).unwrap())];
    let (from, to) = (Some(at("2017-01-01T00:00:00.000Z")), Some(at("2017-01-31T23:59:59.999Z")));
    let delivered = PlacedOrder {
        head: world.order(OrderStatus::Delivered),
        history: vec![world.status_event()],
        payments: vec![payment.clone()],
        ..placed.clone()
    };
    let mut retirement = order::retire(&delivered, world.expiry(), now).unwrap();
    vec![
        order::prepare(customer, true, Some(&world.scope), [&world.product]).unwrap().show("order::prepare"),
        order::place(&placed, &with).unwrap().show("order::place"),
        order::place(&own_order, &open(None)).unwrap().show("order::place"),
        order::place(&own_order, &open(Some(&known))).unwrap().show("order::place"),
        order::reference(&world.own_reference_claim()).unwrap().show("order::reference"),
        order::open::get(customer).unwrap().show("order::get"),
        order::open::lapsing(now).unwrap().show("order::lapsing"),
        order::transition(own_paid).unwrap().show("order::transition"),
        order::lapse(&own, &lines, now).unwrap().show("order::lapse"),
        order::get(id).unwrap().show("order::get"),
        order::read_for_update(id).unwrap().show("order::read_for_update"),
        order::lines(id).unwrap().show("order::lines"),
        order::head(id).unwrap().show("order::head"),
        order::transition(shipped).unwrap().show("order::transition"),
        order::transition(cancelled).unwrap().show("order::transition"),
        order::transition(paid).unwrap().show("order::transition"),
        order::transition(reported).unwrap().show("order::transition"),
        order::transition(undone).unwrap().show("order::transition"),
        order::refund(&picking, &entry, &payment, 100, claim, now).unwrap().show("order::refund"),
        order::of_customer(customer, from, to).unwrap().show("order::of_customer"),
        order::of_customer(customer, None, None).unwrap().show("order::of_customer"),
        order::earlier(customer).unwrap().show("order::earlier"),
        order::by_status(OrderStatus::Paid, from, to, lists::unchanged()).unwrap().show("order::by_status"),
        order::by_status(OrderStatus::Paid, None, None, lists::unchanged()).unwrap().show("order::by_status"),
        order::shipments(customer, from).unwrap().show("order::shipments"),
        retirement.pop().unwrap().show("order::retire"),
        order::add_log(&world.order_log()).unwrap().show("order::add_log"),
        order::log(id).unwrap().show("order::log"),
        order::daily_log::of_day(&world.order_log().at.day(), lists::unchanged()).unwrap().show("order::of_day"),
        order::daily_log::read([&world.order_log().id]).unwrap().show("order::read"),
        order::parts::with_lines(id).unwrap().show("order::with_lines"),
        order::parts::with_history(id).unwrap().show("order::with_history"),
        order::addresses::get(&pending).unwrap().show("order::get"),
        order::addresses::of_customer(customer).unwrap().show("order::of_customer"),
        order::addresses::erase([&addresses.data]).unwrap().show("order::erase"),
    ]
}

pub(super) fn pricing_rules(world: &World) -> Vec<Shown> {
    let (now, rules, zone, rule) = (at(NOW), world.rules(), world.shipping_zone(), world.tax_rule());
    vec![
        pricing::read().unwrap().show("pricing::read"),
        pricing::read_for_update().unwrap().show("pricing::read_for_update"),
        pricing::create(&Rules::default(), &zone).unwrap().show("pricing::create"),
        pricing::create(&rules, &rule).unwrap().show("pricing::create"),
        pricing::change_zone(&rules, &zone, 1, now).unwrap().show("pricing::change_zone"),
        pricing::change_tax_rule(&rules, &rule, 1, now).unwrap().show("pricing::change_tax_rule"),
        pricing::delete(&rules, &zone.data, 1, now).unwrap().show("pricing::delete"),
    ]
}

pub(super) fn promotions(world: &World) -> Vec<Shown> {
    let (now, rules, coded, automatic) = (at(NOW), world.rules(), world.promotion(), world.automatic_promotion());
    let (customer, ids) = (&world.customer, [&coded.id]);
    let raised = Promotion { limit_total: Some(200), ..coded.data.clone() };
    let renamed = Promotion { name: "Sale".into(), ..automatic.data.clone() };
    let (mut placed, mut cancelled) = (world.order(OrderStatus::Pending), world.order_with_promotions());
    placed.data.charges.clone_from(&cancelled.charges);
    cancelled.data.unfinished = None;
    let step = Step::new(&cancelled, &[], OrderStatus::Cancelled, now, "c1");
    let placed = PlacedOrder::new(placed, Vec::new(), "c1");
    let uses = promotion::take(&[world.promotion_use()], customer, now).unwrap();
    vec![
        promotion::find(&["SÜMMER 10".to_owned()], customer, now).unwrap().show("promotion::find"),
        promotion::count_unknown_codes(customer, 2, now).unwrap().show("promotion::count_unknown_codes"),
        promotion::read(ids, [&automatic.id], customer).unwrap().show("promotion::read"),
        promotion::get(&coded.id).unwrap().show("promotion::get"),
        promotion::list().unwrap().show("promotion::list"),
        promotion::uses([&coded.id]).unwrap().show("promotion::uses"),
        promotion::create(&rules, &coded, None).unwrap().show("promotion::create"),
        promotion::create(&rules, &automatic, None).unwrap().show("promotion::create"),
        promotion::change(&coded, &raised, now).unwrap().show("promotion::change"),
        promotion::change(&automatic, &renamed, now).unwrap().show("promotion::change"),
        promotion::delete(&rules, &coded, now).unwrap().show("promotion::delete"),
        promotion::delete(&rules, &automatic, now).unwrap().show("promotion::delete"),
        order::place(&placed, &uses).unwrap().show("order::place"),
        order::transition(step).unwrap().show("order::transition"),
        order::lapse(&cancelled, &[], now).unwrap().show("order::lapse"),
    ]
}

pub(super) fn invoices(world: &World) -> Vec<Shown> {
    let (invoice, mut order, seen) = (world.invoice(), world.order(OrderStatus::Paid), world.invoice_counter());
    order.data.invoice_number = None;
    vec![
        invoice::get(invoice.number).unwrap().show("invoice::get"),
        invoice::counter().unwrap().show("invoice::counter"),
        invoice::issue(&invoice, &order, None).unwrap().show("invoice::issue"),
        invoice::issue(&invoice, &order, Some(&seen)).unwrap().show("invoice::issue"),
    ]
}

pub(super) fn staged(world: &World) -> Vec<Shown> {
    let (placing, line, now) = (world.order(OrderStatus::Placing), world.order_line(), at(NOW));
    let record =
        idempotency::claim(&world.idempotency_record(StoredResponse::Order(world.order.clone())), now).unwrap();
    let with = [(OrderAction::Idempotency, record), (OrderAction::Cart, cart::check_out(&world.cart()).unwrap())];
    let own = world.own_order(OrderStatus::Placing);
    let open = order::open::enter(&own, world.open_order(), None).unwrap();
    let uses = promotion::take(&[world.promotion_use()], &world.customer, now).unwrap();
    let own_with = [vec![(OrderAction::Open, open)], uses].concat();
    let mut order = PlacedOrder::new(placing.clone(), vec![line.clone()], "c1");
    order.addresses = Some(world.order_addresses());
    let own_order = PlacedOrder::new(own.clone(), Vec::new(), "c1");
    let lines = std::slice::from_ref(&line);
    let claims = Claims { reference: true, idempotency: true, open: true };
    let given_back = order::staged::give_back(&world.returning_order(), lines, now).unwrap().unwrap();
    vec![
        order::staged::available([&world.product]).unwrap().show("order::available"),
        order::staged::begin(&placing, &with).unwrap().show("order::begin"),
        order::staged::begin(&own, &own_with).unwrap().show("order::begin"),
        order::staged::commit(&own_order, &own_with).unwrap().show("order::commit"),
        order::staged::undo_last(&own, lines, claims, now).unwrap().show("order::undo_last"),
        order::staged::reserve(&placing, lines).unwrap().show("order::reserve"),
        order::staged::commit(&order, &with).unwrap().show("order::commit"),
        order::staged::undo(&placing, lines, now).unwrap().show("order::undo"),
        order::staged::undo_last(&placing, lines, claims, now).unwrap().show("order::undo_last"),
        given_back.show("order::give_back"),
        order::staged::unfinished(now).unwrap().show("order::unfinished"),
    ]
}

pub(super) fn sold(world: &World) -> Vec<Shown> {
    let (from, to) = (at("2017-01-01T00:00:00.000Z"), at("2017-12-31T23:59:59.999Z"));
    let (month, city) = ("2017-01".parse().unwrap(), "Z_C3_BCrich".parse().unwrap());
    let (pending, mut cancelled) = (world.order(OrderStatus::Pending), world.order(OrderStatus::Cancelled));
    cancelled.meta.rev += 1;
    let lines = [world.order_line()];
    let apply = |head, seen: &sales::Derived| {
        sales::apply(head, &lines, seen, world.sale_region(false).data, at(NOW)).unwrap().remove(0)
    };
    let counted = apply(&pending, &sales::Derived::default());
    let seen = [DerivedItem::Sale(world.sale(false)), DerivedItem::SaleRegion(world.sale_region(false))];
    let reversed = apply(&cancelled, &seen.into_iter().collect());
    let mut shipped = world.order(OrderStatus::Shipped);
    shipped.meta.rev += 1;
    let seen = [DerivedItem::Sale(world.sale(false)), DerivedItem::SaleRegion(world.sale_region(false))];
    let ranked = apply(&shipped, &seen.into_iter().collect());
    vec![
        sales::of_product(&world.product, 2017, from, to).unwrap().show("sales::of_product"),
        sales::derived(&world.order).unwrap().show("sales::derived"),
        counted.show("sales::apply"),
        reversed.show("sales::apply"),
        ranked.show("sales::apply"),
        region::get(&world.store).unwrap().show("region::get"),
        region::read_for_update(&world.store).unwrap().show("region::read_for_update"),
        region::create(&world.shop()).unwrap().show("region::create"),
        region::change(&world.shop(), 3, at(NOW)).unwrap().show("region::change"),
        region::sales(&world.country, &month, None).unwrap().show("region::sales"),
        region::sales(&world.country, &month, Some(&city)).unwrap().show("region::sales"),
    ]
}
