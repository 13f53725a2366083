//! The requests of the protocol.

use http_api::{Problem, Request};
use key_schema::checkout_session::{Buyer, SessionDestination, Wish};
use serde::{Deserialize, Deserializer};

use crate::flow::Wanted;
use crate::session::Message;
use crate::wire::{MAX_TEXT_BYTES, NamedLine, body, bounded, codes, invalid, is_token, lines};

/// The id of the only handler of payments.
pub const HANDLER: &str = "card_tokenized";
/// The id of the only destination.
const DESTINATION: &str = "address";

#[derive(Debug, Clone, Deserialize)]
pub struct Checkout {
    #[serde(alias = "items")]
    line_items: Option<Vec<Item>>,
    // A member that is absent leaves the checkout as it is, and null clears it.
    #[serde(default, deserialize_with = "named")]
    buyer: Option<Option<BuyerIn>>,
    #[serde(default, deserialize_with = "named")]
    fulfillment_details: Option<Option<Details>>,
    #[serde(default, deserialize_with = "named")]
    selected_fulfillment_options: Option<Option<Vec<Selected>>>,
    #[serde(default, deserialize_with = "named")]
    discounts: Option<Option<Discounts>>,
    #[serde(default, deserialize_with = "named")]
    coupons: Option<Option<Vec<String>>>,
}

fn named<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Debug, Clone, Deserialize)]
struct Item {
    id: String,
    #[serde(default = "one")]
    quantity: u64,
}

const fn one() -> u64 {
    1
}

#[derive(Debug, Clone, Deserialize)]
struct BuyerIn {
    first_name: Option<String>,
    last_name: Option<String>,
    full_name: Option<String>,
    email: Option<String>,
    phone_number: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Details {
    name: Option<String>,
    phone_number: Option<String>,
    email: Option<String>,
    address: Option<Address>,
}

#[derive(Debug, Clone, Deserialize)]
struct Address {
    name: Option<String>,
    line_one: Option<String>,
    line_two: Option<String>,
    city: Option<String>,
    state: Option<String>,
    country: Option<String>,
    postal_code: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Selected {
    option_id: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Discounts {
    codes: Option<Vec<String>>,
}

/// Reads the request that begins a checkout.
///
/// # Errors
/// 400 without lines, or with a text or a list that is too long.
pub fn create(request: &Request<'_>) -> Result<Wanted, Problem> {
    let checkout: Checkout = body(request)?;
    if checkout.line_items.as_ref().is_none_or(Vec::is_empty) {
        return Err(invalid("line_items is missing.").error("$.line_items", "is missing"));
    }
    checkout.change(Wish::default())
}

/// Reads the request that changes what an agent wants.
///
/// # Errors
/// As for [`create`]. What it changes then fits any checkout.
pub fn update(request: &Request<'_>) -> Result<Checkout, Problem> {
    let checkout: Checkout = body(request)?;
    if checkout.line_items.as_ref().is_some_and(Vec::is_empty) {
        return Err(invalid("line_items is empty.").error("$.line_items", "is empty"));
    }
    checkout.clone().change(Wish::default())?;
    Ok(checkout)
}

impl Checkout {
    /// Changes what an agent wants, as far as the request names it.
    pub fn change(self, mut wish: Wish) -> Result<Wanted, Problem> {
        let Self { line_items, buyer, fulfillment_details, selected_fulfillment_options, discounts, coupons } = self;
        let mut messages = Vec::new();
        if let Some(items) = line_items {
            let named = |Item { id, quantity }| NamedLine { id: None, product: id, quantity };
            wish.lines = lines(items.into_iter().map(named).collect(), &mut messages)?;
        }
        if let Some(buyer) = buyer {
            wish.buyer = buyer.map(BuyerIn::read).transpose()?;
        }
        if let Some(details) = fulfillment_details {
            (wish.destinations, wish.destination, wish.contact) = (Vec::new(), None, None);
            if let Some(details) = details {
                details.add_to(&mut wish)?;
            }
        }
        if let Some(selected) = selected_fulfillment_options {
            let option = selected.into_iter().flatten().next();
            // An option that is no id is none of the shop's options.
            wish.method = option.and_then(|option| option.option_id.parse().ok());
        }
        let given = discounts.map(|discounts| discounts.and_then(|discounts| discounts.codes)).or(coupons);
        if let Some(given) = given {
            wish.codes = codes(given.unwrap_or_default(), &mut messages)?;
        }
        Ok(Wanted { wish, messages, refused: Vec::new() })
    }
}

fn text(value: Option<String>) -> Result<Option<String>, Problem> {
    bounded(value, MAX_TEXT_BYTES)
}

impl BuyerIn {
    fn read(self) -> Result<Buyer, Problem> {
        let (first, last, full) = (text(self.first_name)?, text(self.last_name)?, text(self.full_name)?);
        Ok(Buyer {
            email: bounded(self.email, 2 * MAX_TEXT_BYTES)?,
            first_name: if first.is_none() && last.is_none() { full } else { first },
            last_name: last,
            phone: text(self.phone_number)?,
        })
    }
}

impl Details {
    /// Adds the destination and the contact.
    fn add_to(self, wish: &mut Wish) -> Result<(), Problem> {
        let Self { name, phone_number, email, address } = self;
        let (name, phone, email) = (text(name)?, text(phone_number)?, bounded(email, 2 * MAX_TEXT_BYTES)?);
        if let Some(Address { name: receiver, line_one, line_two, city, state, country, postal_code }) = address {
            wish.destinations = vec![SessionDestination {
                id: DESTINATION.to_owned(),
                first_name: text(receiver)?.or_else(|| name.clone()),
                last_name: None,
                line1: text(line_one)?,
                line2: text(line_two)?,
                city: text(city)?,
                region: text(state)?,
                postal_code: text(postal_code)?,
                country: text(country)?,
                phone: phone.clone(),
            }];
            wish.destination = Some(DESTINATION.to_owned());
        }
        wish.contact = Some(Buyer { email, first_name: name, last_name: None, phone });
        Ok(())
    }
}

#[derive(Deserialize)]
struct Completion {
    payment_data: PaymentData,
    buyer: Option<BuyerIn>,
}

#[derive(Deserialize)]
struct PaymentData {
    handler_id: Option<String>,
    instrument: Option<Instrument>,
}

#[derive(Deserialize)]
struct Instrument {
    credential: Option<Credential>,
}

#[derive(Deserialize)]
struct Credential {
    token: Option<String>,
}

/// Reads the request that places the order: the token of the card, or a message why it is none, and the
/// buyer, if the agent names the buyer only now.
#[allow(clippy::type_complexity, reason = "both parts have one use")]
pub fn complete(request: &Request<'_>) -> Result<(Result<String, Message>, Option<Buyer>), Problem> {
    let Completion { payment_data: PaymentData { handler_id, instrument }, buyer } = body(request)?;
    let refused =
        |field: &str, content: &str| Message::error("payment_failed", format!("$.payment_data.{field}"), content);
    let token = instrument.and_then(|instrument| instrument.credential?.token).filter(|token| is_token(token));
    let token = match (handler_id.as_deref(), token) {
        (Some(HANDLER), Some(token)) => Ok(token),
        (Some(HANDLER), None) => {
            Err(refused("instrument.credential.token", "This is no token of the payment handler."))
        }
        _ => Err(refused("handler_id", "This handler is none of those that the checkout offers.")),
    };
    Ok((token, buyer.map(BuyerIn::read).transpose()?))
}
