//! The requests of the protocol.

use http_api::Problem;
use key_schema::checkout_session::{Buyer, MAX_DESTINATIONS, SessionDestination, Wish};
use serde::Deserialize;

use super::Version;
use crate::flow::Wanted;
use crate::session::Message;
use crate::wire::{MAX_ID_BYTES, MAX_TEXT_BYTES, NamedLine, bounded, codes, invalid, is_token, lines};

/// One piece in Recommendation 20 of UN/CEFACT.
const PIECE: &str = "C62";

#[derive(Debug, Clone, Deserialize)]
pub struct Purchase {
    line_items: Option<Vec<LineItem>>,
    pub cart_id: Option<String>,
    buyer: Option<BuyerIn>,
    fulfillment: Option<Fulfillment>,
    discounts: Option<Discounts>,
}

#[derive(Debug, Clone, Deserialize)]
struct LineItem {
    id: Option<String>,
    item: Item,
    quantity: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct Item {
    id: String,
    quantity_unit: Option<Unit>,
}

/// What an agent counts a quantity in.
#[derive(Debug, Clone, Deserialize)]
struct Unit {
    unit: String,
    #[serde(default)]
    scale: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct BuyerIn {
    email: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    phone_number: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Fulfillment {
    methods: Option<Vec<Method>>,
}

#[derive(Debug, Clone, Deserialize)]
struct Method {
    destinations: Option<Vec<Destination>>,
    selected_destination_id: Option<String>,
    groups: Option<Vec<Group>>,
}

#[derive(Debug, Clone, Deserialize)]
struct Destination {
    id: Option<String>,
    street_address: Option<String>,
    extended_address: Option<String>,
    address_locality: Option<String>,
    address_region: Option<String>,
    postal_code: Option<String>,
    address_country: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    phone_number: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Group {
    selected_option_id: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Discounts {
    codes: Option<Vec<String>>,
}

impl Purchase {
    /// Returns what the agent wants. It may choose one of the destinations that are known of the session.
    ///
    /// # Errors
    /// 400 without lines, or with a text or a list that is too long.
    pub fn wanted(self, known: &[SessionDestination]) -> Result<Wanted, Problem> {
        let Self { line_items, cart_id: _, buyer, fulfillment, discounts } = self;
        let line_items =
            line_items.filter(|lines| !lines.is_empty()).ok_or_else(|| invalid("line_items is missing."))?;
        let (mut messages, mut refused) = (Vec::new(), Vec::new());
        let (counted, others): (Vec<_>, Vec<_>) = line_items.into_iter().partition(|line| line.item.is_counted());
        for LineItem { item, .. } in others {
            let content = format!("The item {:.64} is sold by the piece (C62).", item.id);
            refused.push(Message::error("quantity_unit_mismatch", "$.line_items", content));
        }
        let named = |LineItem { id, item, quantity }| NamedLine { id, product: item.id, quantity };
        let lines = lines(counted.into_iter().map(named).collect(), &mut messages)?;
        let codes = codes(discounts.and_then(|discounts| discounts.codes).unwrap_or_default(), &mut messages)?;
        let mut wish = Wish { lines, buyer: buyer.map(BuyerIn::read).transpose()?, codes, ..Wish::default() };
        // The shop sends everything in one way, to one place.
        let method = fulfillment.and_then(|fulfillment| fulfillment.methods?.into_iter().next());
        if let Some(Method { destinations, selected_destination_id, groups }) = method {
            let destinations = destinations.unwrap_or_default();
            if destinations.len() > MAX_DESTINATIONS {
                return Err(invalid(format!("There can be at most {MAX_DESTINATIONS} destinations.")));
            }
            let numbered = (1..).zip(destinations);
            let read = numbered.map(|(number, destination)| destination.read(number)).collect::<Result<Vec<_>, _>>();
            wish.destinations = read?;
            wish.destination = wish.destinations.first().map(|destination| destination.id.clone());
            if let Some(id) = bounded(selected_destination_id, MAX_ID_BYTES)? {
                let is_named = |destination: &&SessionDestination| destination.id == id;
                let mut found = wish.destinations.iter().any(|destination| is_named(&destination));
                if let Some(before) = known.iter().find(is_named)
                    && !found
                    && wish.destinations.len() < MAX_DESTINATIONS
                {
                    wish.destinations.push(before.clone());
                    found = true;
                }
                if !found {
                    let path = "$.fulfillment.methods[0].selected_destination_id";
                    refused.push(Message::error("destination_unknown", path, "There is no such destination."));
                }
                wish.destination = found.then_some(id);
            }
            let option = groups.and_then(|groups| groups.into_iter().next()?.selected_option_id);
            // An option that is no id is none of the shop's options.
            wish.method = option.and_then(|option| option.parse().ok());
        }
        Ok(Wanted { wish, messages, refused })
    }

    /// Returns the buyer alone, for the request that completes a checkout.
    pub fn buyer(self) -> Result<Option<Buyer>, Problem> {
        self.buyer.map(BuyerIn::read).transpose()
    }
}

impl Item {
    /// Returns whether the agent wants pieces, which is all that the shop sells.
    fn is_counted(&self) -> bool {
        self.quantity_unit.as_ref().is_none_or(|Unit { unit, scale }| unit == PIECE && *scale == 0)
    }
}

impl BuyerIn {
    fn read(self) -> Result<Buyer, Problem> {
        let text = |value| bounded(value, MAX_TEXT_BYTES);
        Ok(Buyer {
            email: bounded(self.email, 2 * MAX_TEXT_BYTES)?,
            first_name: text(self.first_name)?,
            last_name: text(self.last_name)?,
            phone: text(self.phone_number)?,
        })
    }
}

impl Destination {
    fn read(self, number: usize) -> Result<SessionDestination, Problem> {
        let text = |value| bounded(value, MAX_TEXT_BYTES);
        let id = bounded(self.id, MAX_ID_BYTES)?.filter(|id| !id.is_empty());
        Ok(SessionDestination {
            id: id.unwrap_or_else(|| format!("dest_{number}")),
            first_name: text(self.first_name)?,
            last_name: text(self.last_name)?,
            line1: text(self.street_address)?,
            line2: text(self.extended_address)?,
            city: text(self.address_locality)?,
            region: text(self.address_region)?,
            postal_code: text(self.postal_code)?,
            country: text(self.address_country)?,
            phone: text(self.phone_number)?,
        })
    }
}

#[derive(Debug, Deserialize)]
pub struct Completion {
    payment: Payment,
}

#[derive(Debug, Deserialize)]
struct Payment {
    instruments: Vec<Instrument>,
}

#[derive(Deserialize)]
struct Instrument {
    handler_id: Option<String>,
    #[serde(default)]
    selected: bool,
    credential: Option<Credential>,
}

impl std::fmt::Debug for Instrument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Instrument")
    }
}

#[derive(Deserialize)]
struct Credential {
    token: Option<String>,
}

impl Completion {
    /// Returns the token of the selected instrument, or of the first one.
    ///
    /// # Errors
    /// A message, if the shop has no such handler, or if the token is none of this handler.
    pub fn token(self, version: Version) -> Result<String, Message> {
        let mut instruments = self.payment.instruments;
        if instruments.len() > 1 && version.has_one_instrument() {
            let content = "A checkout is paid with one instrument.";
            return Err(Message::error("payment_failed", "$.payment.instruments", content));
        }
        let at = instruments.iter().position(|instrument| instrument.selected).unwrap_or(0);
        let path = |field: &str| format!("$.payment.instruments[{at}].{field}");
        if at >= instruments.len() {
            let content = "A payment instrument is required.";
            return Err(Message::error("payment_failed", "$.payment.instruments", content));
        }
        let Instrument { handler_id, credential, .. } = instruments.swap_remove(at);
        if handler_id.as_deref() != Some(super::HANDLER) {
            let content = "This handler is none of those that the checkout offers.";
            return Err(Message::error("payment_failed", path("handler_id"), content));
        }
        credential.and_then(|credential| credential.token).filter(|token| is_token(token)).ok_or_else(|| {
            Message::error("payment_failed", path("credential.token"), "This is no token of the payment handler.")
        })
    }
}
