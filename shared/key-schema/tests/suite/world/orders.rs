//! Examples of orders and sales.

use std::collections::BTreeMap;

use key_schema::address::PostalAddress;
use key_schema::instant::Instant;
use key_schema::invoice::{Invoice, InvoiceCounter};
use key_schema::item::Stored;
use key_schema::lists;
use key_schema::money::Currency;
use key_schema::order::addresses::{Destination, OrderAddresses};
use key_schema::order::open::{OpenOrder, OpenOrders};
use key_schema::order::staged::{Unfinished, Work};
use key_schema::order::{CustomerOrder, Order, OrderLine, OrderLog, OrderStatus, OrderStatusEvent, ReferenceClaim};
use key_schema::payment::{Payment, PaymentMethod};
use key_schema::region::{RegionSales, SHARDS, SaleRegion, StoreLocation};
use key_schema::sales::Sale;
use key_schema::shard::Shards;

use super::{LAPSES, PLACED, UNFINISHED, World};
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
        order.data.destination = Some(Destination::from(&self.order_addresses().shipping_address));
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
            shipping_address: address("Ann", Some("3rd floor")),
            billing_address: Some(address("Ann's company", None)),
            expires_at: None,
        })
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
        self.stored(Payment {
            id: self.payment.clone(),
            order_id: self.order.clone(),
            customer_id: self.customer.clone(),
            method,
            amount: self.money(774),
            at: at("2017-01-04T10:05:00.000Z"),
            by: "staff-1".into(),
            expires_at: None,
            refunded: 0,
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
