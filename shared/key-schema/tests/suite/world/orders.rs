//! Examples of orders, sales and payments, and the requests for them.

use std::collections::BTreeMap;

use key_schema::address::PostalAddress;
use key_schema::entity::AnyEntity as Any;
use key_schema::id::CustomerId;
use key_schema::idempotency::{self, StoredResponse};
use key_schema::instant::Instant;
use key_schema::invoice::{self, Invoice, InvoiceCounter};
use key_schema::item::Stored;
use key_schema::money::Currency;
use key_schema::order::addresses::{Destination, Guest, OrderAddresses};
use key_schema::order::guest::{self, Claimable, OrderToken};
use key_schema::order::open::{OpenOrder, OpenOrders};
use key_schema::order::staged::{Claims, Unfinished, Work};
use key_schema::order::{
    self, CustomerOrder, NumberClaim, Order, OrderAction, OrderLine, OrderLog, OrderStatus, OrderStatusEvent,
    PlacedOrder, ReferenceClaim, Step,
};
use key_schema::payment::{
    self, CaptureMode, Ledger, OperationKind, OperationState, Payment, PaymentMethod, PaymentOperation, PaymentStatus,
    RefundedLine,
};
use key_schema::pricing::{self, Rules};
use key_schema::promotion::{self, Promotion};
use key_schema::provider_event::{self, LIFETIME_SECONDS, ProviderEvent};
use key_schema::region::{self, RegionSales, SHARDS, SaleRegion, StoreLocation};
use key_schema::sales::{self, DerivedItem, Sale};
use key_schema::shard::Shards;
use key_schema::{cart, guest_cart, lists, mail};

use super::{LAPSES, PLACED, UNFINISHED, World};
use crate::exercises::NOW;
use crate::goldens::{Golden, with};
use crate::rendering::{Request as _, Shown};
use crate::support::at;

impl World {
    pub fn shop(&self) -> Stored<StoreLocation> {
        self.stored(StoreLocation {
            id: self.store.clone(),
            country: self.country.clone(),
            city: self.city.clone(),
            name: "By the lake".into(),
        })
    }

    pub fn sale_region(&self, reversed: bool) -> Stored<SaleRegion> {
        self.stored(SaleRegion {
            order_id: self.order.clone(),
            country: self.country.clone(),
            city: self.city.clone(),
            store_id: self.store.clone(),
            placed_at: at(PLACED),
            total: self.money(774),
            reversed,
            shard: SHARDS.of(self.store.as_str()),
        })
    }

    pub fn region_sales(&self) -> Stored<RegionSales> {
        self.stored(RegionSales {
            shard: SHARDS.of(self.store.as_str()),
            country: self.country.clone(),
            city: self.city.clone(),
            store_id: self.store.clone(),
            date: "2017-01-01".into(),
            currency: Currency::USD,
            orders: 9,
            amount: 6966,
        })
    }

    /// Makes the sale of a shipped order.
    pub fn ranked_sale(&self) -> Stored<Sale> {
        let mut sale = self.sale(false);
        sale.data.ranked_at = Some(at("2017-01-03T16:20:00.000Z"));
        sale
    }

    pub fn order(&self, status: OrderStatus) -> Stored<Order> {
        self.stored(Order {
            status,
            reference: Some(self.reference.clone()),
            store_id: Some(self.store.clone()),
            unfinished: (status == OrderStatus::Placing).then(|| Unfinished {
                since: at(UNFINISHED),
                work: Work::Placing { key: Some(self.scope.clone()), lines: 0 },
            }),
            invoice_number: Some(4711),
            ..Order::new(self.order.clone(), self.customer.clone(), at(PLACED), self.money(774), 1)
        })
    }

    /// Makes an order that is sent to an address.
    pub fn addressed_order(&self) -> Stored<Order> {
        let mut order = self.own_order(OrderStatus::Pending);
        order.data.destination = self.order_addresses().shipping_address.as_ref().map(Destination::from);
        order
    }

    pub fn addressed_customer_order(&self) -> Stored<CustomerOrder> {
        self.stored(CustomerOrder::of(&self.addressed_order()))
    }

    pub fn order_addresses(&self) -> Stored<OrderAddresses> {
        let address = |name: &str, line2: Option<&str>| PostalAddress {
            name: name.into(),
            line1: "Limmatquai 1".into(),
            line2: line2.map(Into::into),
            city: self.city.clone(),
            region: Some("ZH".into()),
            postal_code: Some("8001".into()),
            country: "CH".parse().unwrap(),
            phone: Some("+41 44 000 00 00".into()),
        };
        self.stored(OrderAddresses {
            order_id: self.order.clone(),
            customer_id: self.customer.clone(),
            shipping_address: Some(address("Ann", Some("3rd floor"))),
            billing_address: Some(address("Ann's company", None)),
            guest: None,
            expires_at: None,
        })
    }

    /// Makes an order that a guest placed.
    pub fn guest_order(&self) -> Stored<Order> {
        let mut order = self.own_order(OrderStatus::Pending);
        order.data.customer_id = CustomerId::guest(&self.email);
        order.data.token_hash = Some(OrderToken::of(&self.cart_token(), &self.order).hash());
        order
    }

    pub fn guest_addresses(&self) -> Stored<OrderAddresses> {
        let mut addresses = self.order_addresses();
        addresses.data.customer_id = CustomerId::guest(&self.email);
        addresses.data.guest = Some(Guest { email: self.email.clone(), name: "Zoë".into() });
        addresses
    }

    pub fn retired_order_addresses(&self) -> Stored<OrderAddresses> {
        let mut addresses = self.order_addresses();
        addresses.data.expires_at = Some(self.expiry());
        addresses
    }

    /// Makes an order that its customer placed.
    pub fn own_order(&self, status: OrderStatus) -> Stored<Order> {
        let mut order = self.order(status);
        order.data.by_customer = true;
        order.data.lapses_at = Some(at(LAPSES));
        order.data.store_id = None;
        order.data.invoice_number = None;
        order
    }

    pub fn open_order(&self) -> OpenOrder {
        OpenOrder { most: 6, lines: 1 }
    }

    pub fn open_orders(&self) -> Stored<OpenOrders> {
        self.stored(OpenOrders {
            customer_id: self.customer.clone(),
            expires_at: at("2017-01-08T12:53:26.000Z"),
            entries: BTreeMap::from([(self.order.clone(), self.open_order())]),
            day: "2017-01-01".into(),
            placed: 1,
        })
    }

    pub fn number_claim(&self) -> Stored<NumberClaim> {
        self.stored(NumberClaim::of(&self.order))
    }

    /// Makes the claim on a reference that a customer gave.
    pub fn own_reference_claim(&self) -> Stored<ReferenceClaim> {
        self.stored(ReferenceClaim::of(&self.own_order(OrderStatus::Pending)).unwrap())
    }

    /// Makes a large cancelled order whose stock is not all returned yet.
    pub fn returning_order(&self) -> Stored<Order> {
        let mut order = self.order(OrderStatus::Cancelled);
        order.data.unfinished = Some(Unfinished { since: at(UNFINISHED), work: Work::Returning(0) });
        order
    }

    pub fn refunded_order(&self) -> Stored<Order> {
        let mut order = self.order(OrderStatus::Returned);
        order.data.refunded = 774;
        order
    }

    pub fn order_payment(&self, method: PaymentMethod) -> Stored<Payment> {
        let (order, at) = (self.order(OrderStatus::Paid), at("2017-01-04T10:05:00.000Z"));
        self.stored(Payment::received(self.payment.clone(), &order, method, self.money(774), at, "staff-1"))
    }

    pub fn card_payment(&self, status: PaymentStatus) -> Stored<Payment> {
        let mut payment = self.order_payment(PaymentMethod::Card);
        payment.data = Payment {
            status,
            capture: Some(CaptureMode::AtShipping),
            capture_before: Some(at(NOW)),
            intent: Some("pi_3MtwBwLkdIwHu7ix28a3tqPa".into()),
            captured: 0,
            captured_pending: 100,
            refunded_pending: 1,
            declined: Some("insufficient_funds".into()),
            releasing: true,
            ..payment.data
        };
        payment
    }

    pub fn operation(&self, kind: OperationKind, state: OperationState) -> Stored<PaymentOperation> {
        self.stored(PaymentOperation {
            id: self.operation.clone(),
            payment_id: self.payment.clone(),
            order_id: self.order.clone(),
            kind,
            amount: 100,
            at: at(NOW),
            by: "staff-1".into(),
            reason: None,
            refund_lines: Vec::new(),
            state,
            expires_at: None,
            declined: None,
        })
    }

    pub fn provider_event(&self) -> Stored<ProviderEvent> {
        self.stored(ProviderEvent {
            event_id: self.provider_event.clone(),
            intent: "pi_3MtwBwLkdIwHu7ix28a3tqPa".into(),
            order_id: Some(self.order.clone()),
            expires_at: at(NOW).plus_seconds(LIFETIME_SECONDS),
        })
    }

    pub fn invoice(&self) -> Stored<Invoice> {
        self.stored(Invoice {
            number: 4711,
            order_id: self.order.clone(),
            customer_id: self.customer.clone(),
            total: self.money(774),
            issued_at: at(PLACED),
        })
    }

    pub fn invoice_counter(&self) -> Stored<InvoiceCounter> {
        self.stored(InvoiceCounter { last: 4710 })
    }

    pub fn expiry(&self) -> Instant {
        at("2020-01-01T00:00:00.000Z")
    }

    pub fn retired_order(&self) -> Stored<Order> {
        let mut order = self.order(OrderStatus::Delivered);
        order.data.expires_at = Some(self.expiry());
        order
    }

    pub fn retired_customer_order(&self) -> Stored<CustomerOrder> {
        let mut copy = self.customer_order(true);
        copy.data.status = OrderStatus::Delivered;
        copy.data.expires_at = Some(self.expiry());
        copy
    }

    pub fn order_line(&self) -> Stored<OrderLine> {
        self.stored(OrderLine {
            order_id: self.order.clone(),
            line: 7,
            product_id: self.product.clone(),
            product_born: self.product().meta.born,
            name: "ICE - CRUSHED/CUBED 22 LB".into(),
            thumbnail: None,
            quantity: 6,
            unit_price: self.money(129),
            total: self.money(774),
            discount: 0,
            discounts: Vec::new(),
            tax: 0,
            tax_rate: None,
            expires_at: None,
            stock_shards: None,
            picks: Default::default(),
        })
    }

    pub fn status_event(&self) -> Stored<OrderStatusEvent> {
        self.stored(OrderStatusEvent {
            order_id: self.order.clone(),
            status: OrderStatus::Paid,
            at: at("2017-01-01T12:00:00.000Z"),
            by: "staff-1".into(),
            note: Some("at the till".into()),
            message: Some("Thank you".into()),
            carrier: Some("Post".into()),
            tracking: Some("CH-0001".into()),
            expires_at: None,
        })
    }

    pub fn customer_order(&self, shipped: bool) -> Stored<CustomerOrder> {
        self.stored(CustomerOrder {
            shipped_at: shipped.then(|| at("2017-01-02T07:15:00.000Z")),
            carrier: shipped.then(|| "Post".into()),
            tracking: shipped.then(|| "CH-0001".into()),
            ..CustomerOrder::of(&self.order(if shipped { OrderStatus::Shipped } else { OrderStatus::Pending }))
        })
    }

    pub fn reference_claim(&self) -> Stored<ReferenceClaim> {
        self.stored(ReferenceClaim::of(&self.order(OrderStatus::Pending)).unwrap())
    }

    pub fn order_of_eight_shards(&self) -> Stored<Order> {
        let mut order = self.order(OrderStatus::Paid);
        order.data.list_shards = Shards(8);
        order
    }

    pub fn log_of_eight_shards(&self) -> Stored<OrderLog> {
        let mut line = self.order_log();
        line.data.list_shards = Shards(8);
        line
    }

    pub fn order_log(&self) -> Stored<OrderLog> {
        self.stored(OrderLog {
            id: self.log.clone(),
            order_id: self.order.clone(),
            at: at("2017-01-03T16:20:00.000Z"),
            by: "staff-1".into(),
            text: "The customer called.".into(),
            list_shards: lists::FIRST,
        })
    }

    pub fn sale(&self, reversed: bool) -> Stored<Sale> {
        self.stored(Sale {
            order_id: self.order.clone(),
            line: 7,
            product_id: self.product.clone(),
            placed_at: at(PLACED),
            quantity: 6,
            total: self.money(774),
            store_id: Some(self.store.clone()),
            customer_id: self.customer.clone(),
            reversed,
            ranked_at: None,
        })
    }
}

pub fn orders_goldens(world: &World) -> Vec<Golden> {
    vec![
        Golden::of("CustomerOrder", world.customer_order(false), Any::CustomerOrder),
        Golden::of("CustomerOrder-shipped", world.customer_order(true), Any::CustomerOrder),
        Golden::of("CustomerOrder-retired", world.retired_customer_order(), Any::CustomerOrder),
        Golden::of("CustomerOrder-addressed", world.addressed_customer_order(), Any::CustomerOrder),
        Golden::of("Order-addressed", world.addressed_order(), Any::Order),
        Golden::of("OrderAddresses", world.order_addresses(), Any::OrderAddresses),
        Golden::of("OrderAddresses-guest", world.guest_addresses(), Any::OrderAddresses),
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
        Golden::of("UsesShard", world.uses_shard(), Any::UsesShard),
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
        Golden::of("Order-guest", world.guest_order(), Any::Order),
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
        Golden::of("NumberClaim", world.number_claim(), Any::NumberClaim),
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

pub fn payments_goldens(world: &World) -> Vec<Golden> {
    vec![
        Golden::of("Payment", world.order_payment(PaymentMethod::Wallet), Any::Payment),
        Golden::of(
            "Payment-refunded",
            with(world.order_payment(PaymentMethod::Manual), |payment| payment.refunded = 100),
            Any::Payment,
        ),
        Golden::of("Payment-card", world.card_payment(PaymentStatus::Authorised), Any::Payment),
        Golden::of(
            "PaymentOperation",
            world.operation(OperationKind::Capture, OperationState::Unknown),
            Any::PaymentOperation,
        ),
        Golden::of(
            "PaymentOperation-refund",
            with(world.operation(OperationKind::Refund, OperationState::Refused), |refund| {
                refund.reason = Some("damaged in transit".into());
                refund.refund_lines = vec![RefundedLine { line: 1, quantity: 1 }];
                refund.declined = Some("charge_already_refunded".into());
            }),
            Any::PaymentOperation,
        ),
        Golden::of("ProviderEvent", world.provider_event(), Any::ProviderEvent),
        Golden::of("Wallet", world.wallet(), Any::Wallet),
        Golden::of("Wallet-currencies", world.wallet_of_two_currencies(), Any::Wallet),
        Golden::of("WalletEntry", world.wallet_entry(), Any::WalletEntry),
        Golden::of("WalletEntry-payment", world.payment(), Any::WalletEntry),
    ]
}

pub fn guest_carts(world: &World) -> Vec<Shown> {
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

pub fn orders(world: &World) -> Vec<Shown> {
    let (now, id, customer) = (at(NOW), &world.order, &world.customer);
    let (pending, picking) = (world.order(OrderStatus::Pending), world.order(OrderStatus::Picking));
    let lines = [world.order_line()];
    let step = |order, to| Step::new(order, &lines, to, now, "staff-1");
    let shipped =
        Step { carrier: Some("Post".into()), tracking: Some("CH-0001".into()), ..step(&picking, OrderStatus::Shipped) };
    let cancelled = Step { note: Some("changed my mind".into()), ..step(&pending, OrderStatus::Cancelled) };
    let payments = [world.order_payment(PaymentMethod::Wallet)];
    let received = |method| {
        let mut ledger = Ledger::new(&pending, &[], &[], now);
        ledger.add(world.order_payment(method).data).unwrap();
        ledger
    };
    let (by_wallet, by_staff) = (received(PaymentMethod::Wallet), received(PaymentMethod::Manual));
    let paid = Step { money: Some(&by_wallet), ..step(&pending, OrderStatus::Paid) };
    let reported = Step { money: Some(&by_staff), ..step(&pending, OrderStatus::Paid) };
    let mut refunded = Ledger::new(&picking, &payments, &[], now);
    refunded.refund_to_wallet(&world.payment, 100).unwrap();
    let undone = Step { money: Some(&refunded), ..step(&picking, OrderStatus::Cancelled) };
    let own_card = [world.card_payment(PaymentStatus::Pending)];
    let claim = idempotency::claim(&world.idempotency_record(StoredResponse::Order(id.clone())), now).unwrap();
    let own = world.own_order(OrderStatus::Pending);
    let mut begun = Ledger::new(&own, &own_card, &[], now);
    begun.release_all();
    let lapsed = with(world.own_order(OrderStatus::Cancelled), |order| order.lapsed = true);
    let late = [with(world.card_payment(PaymentStatus::Captured), |payment| {
        payment.captured = lapsed.total.amount;
        (payment.captured_pending, payment.refunded_pending) = (0, 0);
    })];
    let mut revived = Ledger::new(&lapsed, &late, &[], now);
    assert!(revived.revive());
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
        payments: payments.to_vec(),
        operations: vec![world.operation(OperationKind::Capture, OperationState::Done)],
        ..placed.clone()
    };
    let mut retirement = order::retire(&delivered, world.expiry(), now).unwrap();
    vec![
        order::prepare(customer, true, Some(&world.scope), [&world.product]).unwrap().show("order::prepare"),
        order::place(&placed, &with).unwrap().show("order::place"),
        order::place(&own_order, &open(None)).unwrap().show("order::place"),
        order::place(&own_order, &open(Some(&known))).unwrap().show("order::place"),
        order::reference(&world.own_reference_claim()).unwrap().show("order::reference"),
        order::numbered(world.number_claim().order_number).unwrap().show("order::numbered"),
        order::open::get(customer).unwrap().show("order::get"),
        order::open::lapsing(now).unwrap().show("order::lapsing"),
        order::transition(own_paid).unwrap().show("order::transition"),
        order::lapse(&own, &lines, Some(&begun), now).unwrap().show("order::lapse"),
        order::revive(&lines, &revived).unwrap().show("order::revive"),
        order::get(id).unwrap().show("order::get"),
        order::read_for_update(id).unwrap().show("order::read_for_update"),
        order::lines(id).unwrap().show("order::lines"),
        order::head(id).unwrap().show("order::head"),
        order::transition(shipped).unwrap().show("order::transition"),
        order::transition(cancelled).unwrap().show("order::transition"),
        order::transition(paid).unwrap().show("order::transition"),
        order::transition(reported).unwrap().show("order::transition"),
        order::transition(undone).unwrap().show("order::transition"),
        order::change_payments(&refunded, &[(OrderAction::Idempotency, claim)]).unwrap().show("order::change_payments"),
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

pub fn payments(world: &World) -> Vec<Shown> {
    let (now, event) = (at(NOW), world.provider_event());
    let (id, intent, order, born) =
        (event.event_id.clone(), event.intent.clone(), event.order_id.clone(), event.meta.born);
    vec![
        payment::unsettled(now).unwrap().show("payment::unsettled"),
        payment::expiring(now).unwrap().show("payment::expiring"),
        provider_event::receive(id, intent, order, born, now).unwrap().show("provider_event::receive"),
    ]
}

pub fn pricing_rules(world: &World) -> Vec<Shown> {
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

pub fn promotions(world: &World) -> Vec<Shown> {
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
        promotion::leases(&coded.id, [0, 63]).unwrap().show("promotion::leases"),
        promotion::lease(&world.leases(), 3, 9, now).unwrap().show("promotion::lease"),
        promotion::lease(&world.leases(), 4, 1, now).unwrap().show("promotion::lease"),
        promotion::take_back(&world.leases(), now).unwrap().show("promotion::take_back"),
        promotion::spent(&world.leases().head).unwrap().show("promotion::spent"),
        promotion::create(&rules, &coded, None).unwrap().show("promotion::create"),
        promotion::create(&rules, &automatic, None).unwrap().show("promotion::create"),
        promotion::change(&coded, &raised, now).unwrap().show("promotion::change"),
        promotion::change(&automatic, &renamed, now).unwrap().show("promotion::change"),
        promotion::delete(&rules, &coded, now).unwrap().show("promotion::delete"),
        promotion::delete(&rules, &automatic, now).unwrap().show("promotion::delete"),
        order::place(&placed, &uses).unwrap().show("order::place"),
        order::transition(step).unwrap().show("order::transition"),
        order::lapse(&cancelled, &[], None, now).unwrap().show("order::lapse"),
    ]
}

/// The orders of guests, and the claim of such an order.
pub fn guest_orders(world: &World) -> Vec<Shown> {
    let (head, addresses, customer, now) = (world.guest_order(), world.guest_addresses(), world.customer(), at(NOW));
    let copy = world.stored(CustomerOrder::of(&head));
    let of_guest = OpenOrders { customer_id: head.customer_id.clone(), ..world.open_orders().data };
    let cart = [(OrderAction::Cart, guest_cart::check_out(&world.guest_cart(false)).unwrap())];
    let mut placed = PlacedOrder::new(head.clone(), vec![world.order_line()], head.customer_id.as_str());
    placed.addresses = Some(addresses.clone());
    let mut paid = PlacedOrder::new(head, Vec::new(), "c1");
    paid.head.data.status = OrderStatus::Paid;
    paid.head.data.invoice_number = Some(4711);
    paid.payments = vec![world.card_payment(PaymentStatus::Captured)];
    let entry = of_guest.entries.get(&world.order).copied();
    let whole = |open| Claimable { order: &placed, copy: &copy, addresses: Some(&addresses), entry, open };
    let least = Claimable { order: &paid, copy: &copy, addresses: None, entry: None, open: None };
    let known = world.open_orders();
    vec![
        order::prepare(&placed.head.customer_id, true, None, [&world.product]).unwrap().show("order::prepare"),
        order::place(&placed, &cart).unwrap().show("order::place"),
        guest::claimable(&placed.head.customer_id, &world.order, &world.customer).unwrap().show("order::claimable"),
        guest::claim(&whole(None), &customer, now).unwrap().show("order::claim"),
        guest::claim(&whole(Some(&known)), &customer, now).unwrap().show("order::claim"),
        guest::claim(&least, &customer, now).unwrap().show("order::claim"),
        mail::of_guest(&placed.head.customer_id, &world.order).unwrap().show("mail::of_guest"),
    ]
}

pub fn invoices(world: &World) -> Vec<Shown> {
    let (invoice, mut order, seen) = (world.invoice(), world.order(OrderStatus::Paid), world.invoice_counter());
    order.data.invoice_number = None;
    vec![
        invoice::get(invoice.number).unwrap().show("invoice::get"),
        invoice::counter().unwrap().show("invoice::counter"),
        invoice::issue(&invoice, &order, None).unwrap().show("invoice::issue"),
        invoice::issue(&invoice, &order, Some(&seen)).unwrap().show("invoice::issue"),
    ]
}

pub fn staged(world: &World) -> Vec<Shown> {
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
    let claims = Claims { number: true, reference: true, idempotency: true, open: true };
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

pub fn sold(world: &World) -> Vec<Shown> {
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
        sales::counts(&world.product).unwrap().show("sales::counts"),
        sales::fold(&world.further_sales()).unwrap().unwrap().show("sales::fold"),
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
