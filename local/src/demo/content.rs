//! The content of the demo, as its files have it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::built_in::{DEMO_CUSTOMERS, DEMO_ORDERS, DEMO_PRODUCTS, DEMO_SHOP};

pub(super) struct Content {
    pub(super) shop: Shop,
    pub(super) products: Vec<Product>,
    pub(super) customers: Vec<Customer>,
    pub(super) orders: Vec<Order>,
}

impl Content {
    pub(super) fn read() -> serde_json::Result<Self> {
        Ok(Self {
            shop: serde_json::from_str(DEMO_SHOP)?,
            products: serde_json::from_str(DEMO_PRODUCTS)?,
            customers: serde_json::from_str(DEMO_CUSTOMERS)?,
            orders: serde_json::from_str(DEMO_ORDERS)?,
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shop {
    pub(super) categories: Vec<Category>,
    /// Bodies by id.
    pub(super) zones: BTreeMap<String, Value>,
    /// Bodies by id.
    pub(super) taxes: BTreeMap<String, Value>,
    pub(super) promotions: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Category {
    /// The path as in a URL.
    pub(super) path: String,
    pub(super) description: String,
}

/// A product. With `variants`, it is a parent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Product {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) brand: String,
    pub(super) size: Option<String>,
    pub(super) category: Vec<String>,
    /// Cents.
    pub(super) price: u64,
    /// The former price in cents.
    pub(super) former: Option<u64>,
    #[serde(default)]
    pub(super) stock: u64,
    pub(super) grams: Option<u64>,
    pub(super) tax: Option<String>,
    pub(super) shippable: Option<bool>,
    pub(super) summary: Option<String>,
    pub(super) text: Option<String>,
    /// The names of pictures with their descriptions.
    #[serde(default)]
    pub(super) pictures: Vec<(String, String)>,
    #[serde(default)]
    pub(super) variants: Vec<Variant>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    pub(super) id: String,
    pub(super) options: BTreeMap<String, String>,
    /// Cents. The default is the price of the parent.
    pub(super) price: Option<u64>,
    pub(super) stock: u64,
    pub(super) picture: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Customer {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) tier: Option<String>,
    pub(super) line1: String,
    pub(super) postal_code: String,
    pub(super) city: String,
    pub(super) country: String,
    #[serde(default)]
    pub(super) likes: Vec<String>,
    #[serde(default)]
    pub(super) follows: Vec<String>,
    /// Product, rating, title and text.
    #[serde(default)]
    pub(super) reviews: Vec<(String, u8, String, String)>,
    /// Subject, text and the answer of staff.
    #[serde(default)]
    pub(super) questions: Vec<(String, String, Option<String>)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Guest {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) line1: String,
    pub(super) postal_code: String,
    pub(super) city: String,
    pub(super) country: String,
}

/// An order. Staff enter it with its time, or else its buyer checks out a cart now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) customer: Option<String>,
    pub(super) guest: Option<Guest>,
    pub(super) days_ago: Option<f64>,
    /// Whether the customer checks out a cart.
    #[serde(default)]
    pub(super) cart: bool,
    /// The shipping method of the cart. The default is the cheapest.
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) codes: Vec<String>,
    /// Pieces by product.
    pub(super) lines: BTreeMap<String, u64>,
    /// The status of the order at the end.
    pub(super) status: Status,
    /// The status from which the order was cancelled, if it is not `pending`.
    pub(super) after: Option<Status>,
    /// The words of staff for the customer in the last change of the status.
    pub(super) message: Option<String>,
    pub(super) note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Pending,
    Paid,
    Picking,
    Shipped,
    Delivered,
    Returned,
    Cancelled,
    /// Nobody paid in time, so the janitor cancels the order.
    Lapsed,
}

impl Status {
    const WAY: [(Self, &'static str); 5] = [
        (Self::Paid, "paid"),
        (Self::Picking, "picking"),
        (Self::Shipped, "shipped"),
        (Self::Delivered, "delivered"),
        (Self::Returned, "returned"),
    ];

    /// Returns the changes that lead a new order to this status.
    fn way(self) -> Vec<&'static str> {
        let reached = Self::WAY.iter().position(|(status, _)| *status == self);
        Self::WAY.iter().take(reached.map_or(0, |last| last + 1)).map(|(_, name)| *name).collect()
    }
}

impl Order {
    /// Returns the changes of the status that lead to the order's status.
    pub(super) fn way(&self) -> Vec<&'static str> {
        match self.status {
            Status::Cancelled => {
                let mut way = self.after.map(Status::way).unwrap_or_default();
                way.push("cancelled");
                way
            }
            status => status.way(),
        }
    }
}
