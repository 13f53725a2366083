//! A shop with derived data, for the tests of the `derived` sink.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::TestTable;
use key_schema::item::{Entity, Stored};
use key_schema::order::Order;
use key_schema::product::{self, Product};
use key_schema::region;
use key_schema::sales::{self, SaleSummary};
use serde_json::Value;
use stream::derived::Derived;
use stream::sink::Sink;
use table::Table;

use crate::support::{consumer, earliest, line};

/// A shop with a table and the sink on it.
pub struct Shop {
    pub test: TestTable,
    pub table: Arc<Table>,
}

impl Shop {
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        let table = Arc::new(test.table());
        Self { test, table }
    }

    pub fn sink(&self) -> Box<dyn Sink> {
        Box::new(Derived::new(self.table.clone(), 4))
    }

    /// Writes an item without the checks that the functions make.
    pub async fn put<T: Entity>(&self, item: &Stored<T>) {
        self.test.put(item).await;
    }

    /// Writes an order with its lines.
    pub async fn place(&self, order: &Stored<Order>) {
        self.put(order).await;
        for number in 1..=order.line_count {
            self.put(&line(order.id.as_str(), number)).await;
        }
    }

    /// Returns the rows of an order by sort key, including reversed rows. Each value has the
    /// quantity, the rev, and whether the row is reversed.
    pub async fn rows(&self, order: &str) -> BTreeMap<String, (String, String, bool)> {
        let answer = self
            .test
            .client()
            .query()
            .table_name(self.test.name())
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", AttributeValue::S(format!("SALES#{order}")))
            .consistent_read(true)
            .send()
            .await
            .unwrap();
        let number = |value: &AttributeValue| value.as_n().unwrap().clone();
        answer
            .items()
            .iter()
            .filter(|row| row["entity"].as_s().unwrap() == "Sale")
            .map(|row| {
                let reversed = row.contains_key("reversed");
                (row["SK"].as_s().unwrap().clone(), (number(&row["quantity"]), number(&row["rev"]), reversed))
            })
            .collect()
    }

    /// Returns the list of a product's sales in 2017.
    pub async fn listed(&self, product: &str) -> Vec<SaleSummary> {
        let (from, to) = ("2017-01-01T00:00:00.000Z".parse().unwrap(), "2017-12-31T00:00:00.000Z".parse().unwrap());
        self.table.query(&sales::of_product(&product.parse().unwrap(), 2017, from, to).unwrap()).await.unwrap().items
    }

    /// Returns a customer's purchases as they are listed, each as `<product> in <order>`.
    pub async fn bought(&self, customer: &str) -> Vec<String> {
        let query = sales::bought(&customer.parse().unwrap()).unwrap();
        let found = self.table.query(&query).await.unwrap().items;
        found.into_iter().map(|bought| format!("{} in {}", bought.product_id, bought.order_id)).collect()
    }

    /// Returns the number of sold pieces of a product, and the number of orders.
    pub async fn sold(&self, product: &str) -> (i64, i64) {
        let page = self.table.query(&product::page(&product.parse().unwrap()).unwrap()).await.unwrap();
        let mut sold = page.items.into_iter().filter_map(|item| match item {
            product::PageItem::ProductSales(sales) => Some((sales.quantity, sales.orders)),
            _ => None,
        });
        sold.next().unwrap_or_default()
    }

    /// Returns a country's sales in January 2017, each as
    /// `<city>/<store>/<day>: <orders> for <amount>`.
    pub async fn totals(&self, country: &str) -> Vec<String> {
        let query = region::sales(country, &"2017-01".parse().unwrap(), None).unwrap();
        let totals = self.table.query(&query).await.unwrap().sum(|total, part| total.data.add(&part.data));
        let found = totals.items.into_iter().map(|total| {
            let total = total.data;
            let (city, store, date) = (total.city, total.store_id, total.date);
            format!("{city}/{store}/{date}: {} for {} {}", total.orders, total.amount, total.currency)
        });
        found.collect()
    }

    /// Returns a product from the table.
    pub async fn product(&self, id: &str) -> Option<Stored<Product>> {
        self.table.get(&product::read_for_update(&id.parse().unwrap()).unwrap()).await.unwrap()
    }

    /// Runs batches one after the other. Each must succeed.
    pub async fn deliver(&self, batches: &[&[Value]]) {
        let (consumer, shelf) = consumer([self.sink()]);
        for batch in batches {
            assert_eq!(earliest(&consumer, batch).await, None);
        }
        assert_eq!(shelf.kept(), []);
    }
}
