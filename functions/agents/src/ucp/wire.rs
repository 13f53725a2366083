//! The requests of the protocol. Members that the shop does not know are ignored, as the protocol wants.

use std::collections::BTreeSet;

use http_api::{Code, Problem, Request};
use key_schema::checkout_session::{Buyer, MAX_DESTINATIONS, MAX_LINES, SessionDestination, SessionLine, Wish};
use key_schema::id::ProductId;
use key_schema::order::MAX_QUANTITY;
use key_schema::promotion::{MAX_CODE_BYTES, MAX_CODES};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::session::Message;

const MAX_TEXT_BYTES: usize = 200;
const MAX_ID_BYTES: usize = 64;
/// The most codes of a request. Only some of them are used together.
const MOST_CODES: usize = 20;
const MAX_TOKEN_BYTES: usize = 500;

/// Reads a body.
///
/// # Errors
/// 400 `invalid_request`.
pub fn body<T: DeserializeOwned>(request: &Request<'_>) -> Result<T, Problem> {
    serde_json::from_str(request.json_text()?).map_err(|error| {
        // The parser's message can quote the body, so the response has only the place.
        let detail =
            format!("The body is not as the protocol wants it, at line {}, column {}.", error.line(), error.column());
        Problem::new(Code::InvalidBody, detail)
    })
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidBody, detail.into())
}

#[derive(Debug, Deserialize)]
pub struct Purchase {
    line_items: Option<Vec<LineItem>>,
    pub cart_id: Option<String>,
    buyer: Option<BuyerIn>,
    fulfillment: Option<Fulfillment>,
    discounts: Option<Discounts>,
}

#[derive(Debug, Deserialize)]
struct LineItem {
    id: Option<String>,
    item: Item,
    quantity: u64,
}

#[derive(Debug, Deserialize)]
struct Item {
    id: String,
}

#[derive(Debug, Default, Deserialize)]
struct BuyerIn {
    email: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    phone_number: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Fulfillment {
    methods: Option<Vec<Method>>,
}

#[derive(Debug, Deserialize)]
struct Method {
    destinations: Option<Vec<Destination>>,
    selected_destination_id: Option<String>,
    groups: Option<Vec<Group>>,
}

#[derive(Debug, Deserialize)]
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

#[derive(Debug, Deserialize)]
struct Group {
    selected_option_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Discounts {
    codes: Option<Vec<String>>,
}

/// What an agent wants, with messages about the parts that cannot be what it says.
#[derive(Debug)]
pub struct Wanted {
    pub wish: Wish,
    pub messages: Vec<Message>,
}

impl Purchase {
    /// Returns what the agent wants.
    ///
    /// # Errors
    /// 400 without lines, or with a text or a list that is too long.
    pub fn wanted(self) -> Result<Wanted, Problem> {
        let Self { line_items, cart_id: _, buyer, fulfillment, discounts } = self;
        let line_items =
            line_items.filter(|lines| !lines.is_empty()).ok_or_else(|| invalid("line_items is missing."))?;
        let mut messages = Vec::new();
        let lines = lines(line_items, &mut messages)?;
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
            let only = wish.destinations.first().map(|destination| destination.id.clone());
            let selected = bounded(selected_destination_id, MAX_ID_BYTES)?;
            wish.destination = selected.filter(|id| wish.destinations.iter().any(|known| known.id == *id)).or(only);
            let option = groups.and_then(|groups| groups.into_iter().next()?.selected_option_id);
            // An option that is no id is none of the shop's options.
            wish.method = option.and_then(|option| option.parse().ok());
        }
        Ok(Wanted { wish, messages })
    }

    /// Returns the buyer alone, for the request that completes a checkout.
    pub fn buyer(self) -> Result<Option<Buyer>, Problem> {
        self.buyer.map(BuyerIn::read).transpose()
    }
}

/// Reads the lines. Lines of the same product become one.
fn lines(items: Vec<LineItem>, messages: &mut Vec<Message>) -> Result<Vec<SessionLine>, Problem> {
    if items.len() > MAX_LINES {
        return Err(invalid(format!("There can be at most {MAX_LINES} line items.")));
    }
    let (mut lines, mut taken) = (Vec::<SessionLine>::new(), BTreeSet::new());
    for (number, LineItem { id, item, quantity }) in (1..).zip(items) {
        if !(1..=MAX_QUANTITY).contains(&quantity) {
            return Err(invalid(format!("The quantity of a line item must be from 1 to {MAX_QUANTITY}.")));
        }
        let Ok(product_id) = item.id.parse::<ProductId>() else {
            let content = "An item is not sold: its id is none of this shop's.";
            messages.push(Message::warning("item_unavailable", "$.line_items", content));
            continue;
        };
        if let Some(line) = lines.iter_mut().find(|line| line.product_id == product_id) {
            line.quantity = line.quantity.saturating_add(quantity).min(MAX_QUANTITY);
            continue;
        }
        let given = bounded(id, MAX_ID_BYTES)?.filter(|id| !id.is_empty() && !taken.contains(id));
        let free = || (number..).map(|number: u64| format!("li_{number}")).find(|id| !taken.contains(id));
        let id = given.or_else(free).unwrap_or_default();
        taken.insert(id.clone());
        lines.push(SessionLine { id, product_id, quantity });
    }
    Ok(lines)
}

/// Reads the codes. A code that no promotion can have is refused at once.
fn codes(given: Vec<String>, messages: &mut Vec<Message>) -> Result<Vec<String>, Problem> {
    if given.len() > MOST_CODES {
        return Err(invalid(format!("There can be at most {MOST_CODES} codes.")));
    }
    let mut codes = Vec::new();
    for code in given {
        let is_code = !code.trim().is_empty() && code.len() <= MAX_CODE_BYTES && !code.contains(char::is_control);
        if is_code && codes.len() < MAX_CODES {
            codes.push(code);
        } else {
            let content = if is_code { "There are too many codes." } else { "A code is unknown." };
            messages.push(Message::warning("discount_code_invalid", "$.discounts.codes", content));
        }
    }
    Ok(codes)
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

fn bounded(text: Option<String>, most: usize) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.len() > most => Err(invalid(format!("A text has more than {most} bytes."))),
        text => Ok(text.filter(|text| !text.trim().is_empty())),
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
    pub fn token(self) -> Result<String, Message> {
        let mut instruments = self.payment.instruments;
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
        let is_token = |token: &String| {
            let is_known = token.starts_with("pm_") || token.starts_with("spt_");
            is_known
                && token.len() <= MAX_TOKEN_BYTES
                && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        credential.and_then(|credential| credential.token).filter(is_token).ok_or_else(|| {
            Message::error("payment_failed", path("credential.token"), "This is no token of the payment handler.")
        })
    }
}
