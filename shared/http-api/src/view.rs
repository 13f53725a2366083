//! Response bodies that several functions share.

use std::collections::BTreeMap;

use key_schema::address::PostalAddress;
use key_schema::customer::{Customer, Location, MAX_ADDRESSES, Tier};
use key_schema::id::{AddressName, CustomerId, OrderId, OrderReference, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::addresses::Destination;
use key_schema::order::{OrderNumber, OrderStatus, OrderSummary};
use key_schema::question::{CustomerQuestion, MAX_ANSWERS, Question, QuestionStatus, QuestionSummary};
use key_schema::text::{Email, Username};
use serde::Serialize;

use crate::contract::Schema;
use crate::contract::rules::{
    Integer, Named, Text, VERSION, any, integer, long_text, map_of, named, text, visible_text,
};

/// The name that mails use after "Dear".
pub const CUSTOMER_NAME: Named<Text> =
    named("CustomerName", "The name to address the customer by, 1 to 200 bytes.", visible_text(1..=200));
pub const SUBJECT: Named<Text> = named("Subject", "1 to 200 bytes.", text(1..=200));
/// A page of a hundred questions, or a question with all its answers, stays within the 1 MB that
/// one Query reads.
pub const SUPPORT_TEXT: Named<Text> = named(
    "SupportText",
    "1 to 8000 bytes. Line feeds and tabs are the only allowed control characters.",
    long_text(1..=8000),
);
const ANSWER_COUNT: Integer<usize> = integer(0..=MAX_ANSWERS);

#[derive(Debug, Serialize, Schema)]
pub struct CustomerView<'a> {
    id: &'a CustomerId,
    email: &'a Email,
    /// Whether a token or a code has proved the address, or staff has set it. An unverified address
    /// gets no mail about orders.
    email_verified: bool,
    username: &'a Username,
    #[field(rule = CUSTOMER_NAME, example = "Ann Ångström")]
    name: &'a str,
    tier: Tier,
    place: Option<&'a Location>,
    /// Addresses by name.
    #[field(rule = map_of::<AddressName, _>(any::<PostalAddress>(), MAX_ADDRESSES))]
    addresses: &'a BTreeMap<AddressName, PostalAddress>,
    #[field(rule = VERSION)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<Customer>> for CustomerView<'a> {
    fn from(customer: &'a Stored<Customer>) -> Self {
        Self {
            id: &customer.id,
            email: &customer.email,
            email_verified: customer.email_verified,
            username: &customer.username,
            name: &customer.name,
            tier: customer.tier,
            place: customer.place.as_ref(),
            addresses: &customer.addresses,
            version: customer.meta.version,
            created_at: customer.meta.created_at,
            updated_at: customer.meta.updated_at,
        }
    }
}

/// The fields of an order in every list.
#[derive(Debug, Serialize, Schema)]
pub struct OrderHead<'a> {
    id: &'a OrderId,
    number: OrderNumber,
    reference: Option<&'a OrderReference>,
    customer_id: &'a CustomerId,
    status: OrderStatus,
    #[field(example = {"amount": 258, "currency": "USD"})]
    total: Money,
    placed_at: Instant,
    #[field(rule = integer(1..=u64::MAX), example = 1)]
    line_count: u64,
}

impl<'a> From<&'a OrderSummary> for OrderHead<'a> {
    fn from(order: &'a OrderSummary) -> Self {
        let OrderSummary { id, reference, customer_id, status, total, placed_at, line_count, destination: _ } = order;
        Self {
            id,
            number: OrderNumber::of(id),
            reference: reference.as_ref(),
            customer_id,
            status: *status,
            total: *total,
            placed_at: *placed_at,
            line_count: *line_count,
        }
    }
}

#[derive(Debug, Serialize, Schema)]
#[schema(page = "OrderPage")]
pub struct OrderSummaryView<'a> {
    #[serde(flatten)]
    head: OrderHead<'a>,
    /// Only in the list of a customer's orders, and only if the order has an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a Destination>,
}

impl<'a> From<&'a OrderSummary> for OrderSummaryView<'a> {
    fn from(order: &'a OrderSummary) -> Self {
        Self { head: OrderHead::from(order), destination: order.destination.as_ref() }
    }
}

#[derive(Debug, Serialize, Schema)]
pub struct QuestionView<'a> {
    id: &'a QuestionId,
    customer_id: &'a CustomerId,
    #[field(rule = SUBJECT, example = "Ice")]
    subject: &'a str,
    #[field(rule = SUPPORT_TEXT, example = "Does it melt?")]
    text: &'a str,
    status: QuestionStatus,
    /// A question without answers is open.
    #[field(rule = ANSWER_COUNT, example = 0)]
    answer_count: u64,
    #[field(rule = VERSION)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<Question>> for QuestionView<'a> {
    fn from(Stored { meta, data }: &'a Stored<Question>) -> Self {
        let Question { id, customer_id, status, answer_count, title, text } = data;
        Self {
            id,
            customer_id,
            subject: title,
            text,
            status: *status,
            answer_count: *answer_count,
            version: meta.version,
            created_at: meta.created_at,
            updated_at: meta.updated_at,
        }
    }
}

impl<'a> From<&'a Stored<CustomerQuestion>> for QuestionView<'a> {
    fn from(Stored { meta, data }: &'a Stored<CustomerQuestion>) -> Self {
        let CustomerQuestion { id, customer_id, status, answer_count, title, text, .. } = data;
        Self {
            id,
            customer_id,
            subject: title,
            text,
            status: *status,
            answer_count: *answer_count,
            version: meta.version,
            created_at: meta.created_at,
            updated_at: meta.updated_at,
        }
    }
}

impl<'a> From<&'a QuestionSummary> for QuestionView<'a> {
    fn from(listed: &'a QuestionSummary) -> Self {
        let QuestionSummary { id, customer_id, status, title, text, version, created_at, updated_at } = listed;
        Self {
            id,
            customer_id,
            subject: title,
            text,
            status: *status,
            // A summary is an entry of the list of open questions, which have no answers.
            answer_count: 0,
            version: *version,
            created_at: *created_at,
            updated_at: *updated_at,
        }
    }
}
