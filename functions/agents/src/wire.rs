//! What the requests of both protocols have in common: their bounds. Members that the shop does not know
//! are ignored, as both protocols want.

use std::collections::BTreeSet;

use http_api::{Code, Problem, Request};
use key_schema::checkout_session::{MAX_LINES, SessionLine};
use key_schema::id::ProductId;
use key_schema::order::MAX_QUANTITY;
use key_schema::promotion::{MAX_CODE_BYTES, MAX_CODES};
use serde::de::DeserializeOwned;

use crate::session::Message;

pub const MAX_TEXT_BYTES: usize = 200;
pub const MAX_ID_BYTES: usize = 64;
/// The most codes of a request. Only some of them are used together.
const MOST_CODES: usize = 20;
const MAX_TOKEN_BYTES: usize = 500;

/// Reads a body.
///
/// # Errors
/// 400 `invalid_body`.
pub fn body<T: DeserializeOwned>(request: &Request<'_>) -> Result<T, Problem> {
    serde_json::from_str(request.json_text()?).map_err(|error| {
        // The parser's message can quote the body, so the response has only the place.
        let detail =
            format!("The body is not as the protocol wants it, at line {}, column {}.", error.line(), error.column());
        Problem::new(Code::InvalidBody, detail)
    })
}

pub fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidBody, detail.into())
}

pub fn bounded(text: Option<String>, most: usize) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.len() > most => Err(invalid(format!("A text has more than {most} bytes."))),
        text => Ok(text.filter(|text| !text.trim().is_empty())),
    }
}

/// A line, in the agent's words.
#[derive(Debug)]
pub struct NamedLine {
    pub id: Option<String>,
    pub product: String,
    pub quantity: u64,
}

/// Reads the lines. Lines of the same product become one.
pub fn lines(items: Vec<NamedLine>, messages: &mut Vec<Message>) -> Result<Vec<SessionLine>, Problem> {
    if items.len() > MAX_LINES {
        return Err(invalid(format!("There can be at most {MAX_LINES} line items.")));
    }
    let (mut lines, mut taken) = (Vec::<SessionLine>::new(), BTreeSet::new());
    for (number, NamedLine { id, product, quantity }) in (1..).zip(items) {
        if !(1..=MAX_QUANTITY).contains(&quantity) {
            return Err(invalid(format!("The quantity of a line item must be from 1 to {MAX_QUANTITY}.")));
        }
        let Ok(product_id) = product.parse::<ProductId>() else {
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
pub fn codes(given: Vec<String>, messages: &mut Vec<Message>) -> Result<Vec<String>, Problem> {
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

/// Returns whether a text can be a token of the payment provider.
pub fn is_token(token: &str) -> bool {
    let is_known = token.starts_with("pm_") || token.starts_with("spt_");
    is_known && token.len() <= MAX_TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
