//! A table with products in stock, one customer, and orders that are too large for one transaction.

use std::ops::Deref;

use fixture::TestTable;
use fixture::seed::{self, usd};
use key_schema::id::{Born, OrderId, ProductId};
use key_schema::idempotency::{self, IdempotencyRecord, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::lists;
use key_schema::order::staged::{Unfinished, Work};
use key_schema::order::{self, Order, OrderAction, OrderLine, OrderStatus, PlacedOrder};
use key_schema::product::{self, Stock};
use key_schema::request::Guarded;
use table::Table;
use workflows::staging::{StagingError, place};

const NOW: &str = "2026-11-20T12:00:00.000Z";
/// The initial stock of each product.
pub const STOCK: u64 = 10;
/// The quantity of each line of an order.
pub const TAKEN: u64 = 3;

pub struct Shop {
    test: TestTable,
    products: usize,
}

impl Deref for Shop {
    type Target = TestTable;

    fn deref(&self) -> &Self::Target {
        &self.test
    }
}

/// An order to place.
pub struct Basket {
    pub order: Stored<Order>,
    pub lines: Vec<Stored<OrderLine>>,
    scope: Scope,
}

pub fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

pub fn product(number: usize) -> ProductId {
    format!("p{number:03}").parse().unwrap()
}

fn stored<T: Entity>(data: T) -> Stored<T> {
    Stored::new(data, Born::new("b1").unwrap(), at(NOW))
}

impl Shop {
    pub async fn open(products: usize) -> Self {
        let test = TestTable::create().await;
        let shop = Self { test, products };
        shop.put(&stored(seed::customer("c1"))).await;
        for number in 1..=products {
            shop.stock(number, STOCK, true).await;
        }
        shop
    }

    pub async fn stock(&self, number: usize, available: u64, sellable: bool) {
        self.put(&stored(Stock { sellable, ..seed::stock(product(number), available) })).await;
    }

    /// Reads a stock in the form of an earlier table.
    pub async fn old(&self, number: usize) -> Stored<Stock> {
        self.own().get(&product::old_stock(&product(number)).unwrap()).await.unwrap().unwrap()
    }

    /// Replaces the stock of a product, as if staff had created the product again.
    pub async fn revive(&self, number: usize, available: u64) {
        let product_born = Some(Born::new("b2").unwrap());
        self.put(&stored(Stock { product_born, ..seed::stock(product(number), available) })).await;
    }

    pub async fn remove_customer(&self) {
        self.delete(&seed::customer("c1").key().unwrap()).await;
    }

    /// Creates an order for the first `lines` products. `number` distinguishes orders.
    pub fn basket(&self, number: u8, lines: usize) -> Basket {
        let id = OrderId::generate(at(NOW), [number; 10]);
        let scope = Scope { caller: "c1".to_owned(), key: format!("k{number}") };
        let line = |line: usize| OrderLine {
            product_born: Born::new("b1").unwrap(),
            quantity: TAKEN,
            total: usd(387),
            ..seed::line(&id, line as u64, product(line))
        };
        let lines: Vec<_> = (1..=lines).map(|number| stored(line(number))).collect();
        let work = Work::Placing { key: Some(scope.clone()), lines: 0 };
        let order = Order {
            status: OrderStatus::Placing,
            reference: Some(format!("r{number}").parse().unwrap()),
            unfinished: Some(Unfinished { since: at(NOW), work }),
            ..Order::new(id.clone(), "c1".parse().unwrap(), at(NOW), usd(387 * lines.len() as i64), lines.len() as u64)
        };
        Basket { order: stored(order), lines, scope }
    }

    pub async fn place(&self, table: &Table, basket: &Basket) -> Result<(), StagingError> {
        place(table, basket.placed(), &[(OrderAction::Idempotency, basket.claim())]).await
    }

    pub async fn head(&self, id: &OrderId) -> Option<Stored<Order>> {
        self.own().get(&order::head(id).unwrap()).await.unwrap()
    }

    pub async fn available(&self) -> Vec<u64> {
        let products: Vec<ProductId> = (1..=self.products).map(product).collect();
        let stocks = self.own().batch_get(&order::staged::available(&products).unwrap()).await.unwrap();
        stocks.into_iter().map(|stock| if let Some(stock) = stock { stock.available } else { 0 }).collect()
    }

    /// Checks that the order has left no item and no idempotency record, and that all stock is
    /// back.
    pub async fn assert_untouched(&self, basket: &Basket, when: &str) {
        let left = self.own().query(&order::read_for_update(&basket.order.id).unwrap()).await.unwrap().items;
        assert!(left.is_empty(), "{when}: {} items are left", left.len());
        assert_eq!(self.available().await, vec![STOCK; self.products], "{when}");
        let record = self.own().get(&idempotency::get(&basket.scope).unwrap()).await.unwrap();
        assert_eq!(record, None, "{when}: the key is still in use");
    }

    /// Checks that the order exists completely and only once.
    pub async fn assert_placed(&self, basket: &Basket, when: &str) {
        let items = self.own().query(&order::get(&basket.order.id).unwrap()).await.unwrap().items;
        // The items are the lines, the head, and the first entry of the history.
        assert_eq!(items.len(), basket.lines.len() + 2, "{when}");
        let head = self.head(&basket.order.id).await.unwrap();
        assert_eq!(
            (head.status, head.unfinished.is_none(), head.meta.version),
            (OrderStatus::Pending, true, 1),
            "{when}"
        );
        let expected: Vec<u64> =
            (1..=self.products).map(|n| if n <= basket.lines.len() { STOCK - TAKEN } else { STOCK }).collect();
        assert_eq!(self.available().await, expected, "{when}");
        let listed = order::by_status(OrderStatus::Pending, None, None, lists::unchanged()).unwrap();
        assert_eq!(self.own().query(&listed).await.unwrap().items.len(), 1, "{when}");
        let mine = order::of_customer(&basket.order.customer_id, None, None).unwrap();
        assert_eq!(self.own().query(&mine).await.unwrap().items.len(), 1, "{when}");
        assert!(self.unfinished().await.is_empty(), "{when}");
    }

    /// Assigns the idempotency key of one order to another order.
    pub async fn claim_again(&self, of: &Basket, by: &Basket) {
        self.put(&stored(IdempotencyRecord { scope: of.scope.clone(), ..by.record() })).await;
    }

    /// Returns the order that now holds this basket's idempotency key.
    pub async fn claimant(&self, of: &Basket) -> Option<OrderId> {
        let record = self.own().get(&idempotency::get(&of.scope).unwrap()).await.unwrap()?;
        if let StoredResponse::Order(id) = record.data.answer { Some(id) } else { None }
    }

    /// Returns the orders that the janitor finds.
    pub async fn unfinished(&self) -> Vec<OrderId> {
        let query = order::staged::unfinished(at("2030-01-01T00:00:00.000Z")).unwrap();
        self.own().query(&query).await.unwrap().items.into_iter().map(|order| order.id).collect()
    }

    pub async fn read_stock(&self, number: usize) -> u64 {
        self.own().get(&product::stock(&product(number)).unwrap()).await.unwrap().unwrap().available
    }
}

impl Basket {
    pub fn placed(&self) -> PlacedOrder {
        PlacedOrder::new(self.order.clone(), self.lines.clone(), "c1")
    }

    fn record(&self) -> IdempotencyRecord {
        seed::idempotency_record(self.scope.clone(), StoredResponse::Order(self.order.id.clone()), at(NOW))
    }

    fn claim(&self) -> Guarded {
        idempotency::claim(&stored(self.record()), at(NOW)).unwrap()
    }
}
