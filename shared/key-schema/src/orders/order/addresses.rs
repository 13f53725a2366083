//! The addresses of an order, as they were when it was placed.
//!
//! The addresses are personal data, so they are one item in the customer's partition. The erasure
//! of a customer reads these items with one Query and deletes them. The order itself keeps only
//! country and city ([`Destination`]), which appear in lists and in the results of searches.

use std::fmt;
use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::Order;
use crate::customer::{self, Address};
use crate::expression::Condition;
use crate::id::{CustomerId, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, SortKey};
use crate::pattern::Consistency;
use crate::request::{BatchWrite, BatchWriteAction, Get, Guarded, Query, Range};
use crate::text::visible_name;

/// The codes of ISO 3166-1 alpha-2 as of 2026.
const COUNTRIES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR \
    BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ \
    EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW \
    GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY \
    KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV \
    MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY \
    QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG \
    TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM \
    ZW";

/// A country's code of ISO 3166-1 alpha-2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Country(String);

impl Country {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an ISO 3166-1 alpha-2 code in upper case, such as DE")]
pub struct UnknownCountry;

impl FromStr for Country {
    type Err = UnknownCountry;

    fn from_str(text: &str) -> Result<Self, UnknownCountry> {
        let listed = COUNTRIES.split_ascii_whitespace().any(|code| code == text);
        if listed { Ok(Self(text.to_owned())) } else { Err(UnknownCountry) }
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An address to which a parcel or an invoice is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostalAddress {
    pub name: String,
    /// Street and number, or the local equivalent.
    pub line1: String,
    /// Further details, such as the floor.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line2: Option<String>,
    pub city: String,
    /// State, province or canton.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub region: Option<String>,
    pub postal_code: String,
    pub country: Country,
    /// The telephone number for the carrier.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub phone: Option<String>,
}

/// The reason why a parcel cannot be sent to an address of the customer's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnusableAddress {
    /// The country is not a code.
    #[error("has a country that is not an ISO 3166-1 alpha-2 code")]
    Country,
    /// There is no postal code.
    #[error("has no postal code")]
    PostalCode,
    /// A line is blank, or has characters that cannot be printed.
    #[error("has a line that cannot be printed")]
    Text,
}

impl PostalAddress {
    /// Makes a postal address from the name of the recipient and an address of a profile.
    ///
    /// # Errors
    /// [`UnusableAddress`]. A profile may have addresses that no carrier accepts.
    pub fn of(name: &str, address: &Address) -> Result<Self, UnusableAddress> {
        let Address { street, city, postal_code, region, country } = address;
        let shown = |text: &str| match visible_name(text) {
            Ok(visible) => Ok(visible.trim().to_owned()),
            Err(_) => Err(UnusableAddress::Text),
        };
        Ok(Self {
            name: shown(name)?,
            line1: shown(street)?,
            line2: None,
            city: shown(city)?,
            region: region.as_deref().map(shown).transpose()?,
            postal_code: shown(postal_code.as_deref().ok_or(UnusableAddress::PostalCode)?)?,
            country: country.parse().map_err(|_| UnusableAddress::Country)?,
            phone: None,
        })
    }

    #[must_use]
    pub fn destination(&self) -> Destination {
        Destination { country: self.country.clone(), city: self.city.clone() }
    }
}

/// The country and city to which an order is sent. An order keeps them after its customer was
/// erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    pub country: Country,
    pub city: String,
}

entity! {
    OrderAddresses = "OrderAddresses" {
        fixed {
            order_id: OrderId,
            customer_id: CustomerId,
            shipping_address: PostalAddress,
            /// The address on the invoice, if it is not the shipping address.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            billing_address: Option<PostalAddress>,
            /// The time to live of a retired order's addresses.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            expires_at: Option<Instant>,
        }
        mutable {}
    }
}

impl Entity for OrderAddresses {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        addresses_key(&self.customer_id, &self.order_id)
    }

    fn expires(&self) -> Option<Instant> {
        self.expires_at
    }
}

/// Returns the key. It sorts after the questions, so the ranges of other items in the customer's
/// partition do not contain it.
fn addresses_key(customer: &CustomerId, order: &OrderId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::of("SHIPTO", &[order])? })
}

patterns! {
    READ {
        id: "orders.addresses",
        purpose: "Read the addresses of an order",
        request: GetItem,
        key: "PK = CUSTOMER#<customer>, SK = SHIPTO#<order>",
        returns: "the addresses, unless the customer was erased",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "orders.addresses-of-customer",
        purpose: "Find the addresses of an erased customer's orders",
        request: Query,
        key: "PK = CUSTOMER#<customer>, SK under SHIPTO#",
        returns: "the remaining addresses",
        consistency: Consistency::Strong("no later step finds missed addresses"),
        callers: "owner",
    }
    ERASE {
        id: "orders.erase-addresses",
        purpose: "Remove the addresses of an erased customer's orders",
        request: BatchWriteItem,
        key: "PK = CUSTOMER#<customer>, SK = SHIPTO#<order>",
        requires: "no condition",
        callers: "owner",
    }
}

pub fn get(order: &Order) -> Result<Get<Stored<OrderAddresses>>, KeyError> {
    Ok(Get::new(&READ, addresses_key(&order.customer_id, &order.id)?))
}

pub fn of_customer(customer: &CustomerId) -> Result<Query<Stored<OrderAddresses>>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, Range::under("SHIPTO")))
}

pub fn erase<'a>(addresses: impl IntoIterator<Item = &'a OrderAddresses>) -> Result<BatchWrite, KeyError> {
    let keys = addresses.into_iter().map(Entity::key).map(|key| key.map(BatchWriteAction::Delete));
    Ok(BatchWrite::new(&ERASE, keys.collect::<Result<_, _>>()?))
}

/// Writes the addresses, as an action of the transaction that makes the order visible.
pub fn add(addresses: &Stored<OrderAddresses>) -> Result<Guarded, EncodeError> {
    Guarded::put(addresses, Condition::NotExists)
}
