//! The messages that customers read.
//!
//! The messages are plain text, so no text becomes markup. All line breaks are from this module.
//!
//! A customer can enter another person's address. So a message holds no text that customers choose,
//! except their name without links ([`mailed_name`]). It names the order by its number, not by the
//! client's reference. Products' names, carrier, tracking number and the message about
//! a change are from staff. Subjects are
//! constant.

use std::fmt::Write as _;

use bus::{Kind, PlacedLine};
use key_schema::customer::Customer;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::order::OrderNumber;
use key_schema::order::addresses::Guest;
use key_schema::recipient::RecipientHash;
use key_schema::text::{Email, mailed_name};
use key_schema::verification::CODE_SECONDS;

use crate::event::Occasion;

/// The longest text of staff that a message quotes, in characters.
const MAX_QUOTED: usize = 200;

/// A message to one person. It has no `Debug`, so that it cannot be logged.
pub struct Message {
    to: Email,
    subject: String,
    text: String,
    kind: Kind,
}

/// The customer or the guest to whom a message about an order goes.
#[derive(Clone)]
pub struct Recipient {
    email: Email,
    name: String,
}

impl From<&Customer> for Recipient {
    fn from(customer: &Customer) -> Self {
        Self { email: customer.email.clone(), name: customer.name.clone() }
    }
}

impl From<&Guest> for Recipient {
    fn from(guest: &Guest) -> Self {
        Self { email: guest.email.clone(), name: guest.name.clone() }
    }
}

/// What a message says about an order.
#[derive(Debug, Clone, Copy)]
pub struct OrderNews<'a> {
    pub id: &'a OrderId,
    pub total: Money,
    pub placed_at: Instant,
    /// The lines, if the order is new.
    pub lines: &'a [PlacedLine],
    pub carrier: Option<&'a str>,
    pub tracking: Option<&'a str>,
    /// The words of staff for the customer.
    pub said: Option<&'a str>,
}

impl Message {
    #[must_use]
    pub const fn to(&self) -> &Email {
        &self.to
    }

    /// Returns the subject, one line.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Creates a message to a customer about an order.
    #[must_use]
    pub fn about(occasion: Occasion, customer: &Recipient, order: &OrderNews<'_>) -> Self {
        let (title, sentence) = words(occasion);
        let mut text = match mailed_name(&customer.name) {
            Some(name) => format!("Dear {name},\n\n"),
            None => "Dear customer,\n\n".to_owned(),
        };
        let sentence = sentence.replace("{number}", &OrderNumber::of(order.id).to_string());
        let moved = occasion.moved().map(amount).unwrap_or_default();
        let _ = writeln!(text, "{}", sentence.replace("{amount}", &moved));
        if occasion == Occasion::Shipped {
            for (label, value) in [("Carrier", order.carrier), ("Tracking number", order.tracking)] {
                if let Some(value) = value {
                    let _ = write!(text, "\n{label}: {}", quoted(value));
                }
            }
            if order.carrier.is_some() || order.tracking.is_some() {
                text.push('\n');
            }
        }
        if let Some(said) = order.said {
            let _ = writeln!(text, "\nMessage: {}", on_one_line(said));
        }
        text.push('\n');
        for line in order.lines {
            let _ = writeln!(text, "{} x {}: {}", line.quantity, quoted(&line.name), amount(line.total));
        }
        let goods: i64 = order.lines.iter().map(|line| line.total.amount).sum();
        let shipping = order.total.amount.saturating_sub(goods);
        if !order.lines.is_empty() && shipping > 0 {
            let _ = writeln!(text, "Shipping: {}", amount(Money::new(shipping, order.total.currency)));
        }
        let _ = writeln!(text, "Total: {}", amount(order.total));
        let _ = writeln!(text, "Ordered on: {}", order.placed_at.day());
        let kind = match occasion {
            Occasion::Placed => Kind::OrderPlaced,
            Occasion::Refunded(_) | Occasion::Released(_) => Kind::PaymentReversed,
            _ => Kind::OrderStatusChanged,
        };
        Self { to: customer.email.clone(), subject: title.to_owned(), text, kind }
    }

    /// Creates a message with a code that verifies the address. The message does not name the
    /// customer, because the address may belong to somebody else.
    #[must_use]
    pub fn with_code(email: &Email, code: &str) -> Self {
        let minutes = CODE_SECONDS / 60;
        let text = format!(
            "Hello,\n\nthe code to confirm your email address is:\n\n{code}\n\n\
             It is valid for {minutes} minutes. If you did not request it, ignore this message and give the code to \
             nobody.\n"
        );
        let subject = "Confirm your email address".to_owned();
        Self { to: email.clone(), subject, text, kind: Kind::EmailVerificationRequested }
    }

    #[must_use]
    pub fn recipient(&self) -> RecipientHash {
        RecipientHash::of(&self.to)
    }

    #[must_use]
    pub fn has_code(&self) -> bool {
        self.kind == Kind::EmailVerificationRequested
    }
}

const fn words(occasion: Occasion) -> (&'static str, &'static str) {
    match occasion {
        Occasion::Placed => ("Your order", "thank you for your order {number}. This is what we have noted:"),
        Occasion::Paid => ("Your order is paid", "we have received the payment of your order {number}."),
        Occasion::Shipped => ("Your order is on its way", "your order {number} has left our warehouse."),
        Occasion::Delivered => ("Your order was delivered", "your order {number} has been delivered."),
        Occasion::Cancelled => ("Your order was cancelled", "your order {number} has been cancelled."),
        Occasion::Lapsed => (
            "Your order has lapsed",
            "your order {number} was not paid in time, so we have cancelled it. You owe us nothing. If you still want \
             the goods, please place a new order.",
        ),
        Occasion::Returned => ("Your order was returned", "your order {number} has come back to us."),
        Occasion::Refunded(_) => (
            "Your refund",
            "we have refunded {amount} for your order {number} to your card. Until your bank shows it, some days may \
             pass.",
        ),
        Occasion::Released(_) => (
            "Your payment was released",
            "the {amount} that were reserved on your card for your order {number} are released. We have not taken \
             them.",
        ),
    }
}

/// Returns the beginning of a text of staff on one line.
fn quoted(text: &str) -> String {
    on_one_line(text).chars().take(MAX_QUOTED).collect()
}

fn on_one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().map(|c| if breaks(c) { ' ' } else { c }).collect()
}

/// Formats an amount like `12.99 USD`, with the currency's decimals of ISO 4217.
fn amount(money: Money) -> String {
    let currency = money.currency.as_str();
    let decimals = match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI" | "VND"
        | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        "CLF" | "UYW" => 4,
        _ => 2,
    };
    let sign = if money.amount < 0 { "-" } else { "" };
    let minor = 10_u64.pow(decimals);
    let (whole, part) = (money.amount.unsigned_abs() / minor, money.amount.unsigned_abs() % minor);
    match usize::try_from(decimals) {
        Ok(width) if width > 0 => format!("{sign}{whole}.{part:0width$} {currency}"),
        _ => format!("{sign}{whole} {currency}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn amounts_have_the_decimals_of_their_currency() {
        let shown = |amount_: i64, currency: &str| amount(Money::new(amount_, currency.parse().unwrap()));
        assert_eq!(shown(1299, "USD"), "12.99 USD");
        assert_eq!(shown(5, "EUR"), "0.05 EUR");
        assert_eq!(shown(-5, "EUR"), "-0.05 EUR");
        assert_eq!(shown(1299, "JPY"), "1299 JPY");
        assert_eq!(shown(1299, "KWD"), "1.299 KWD");
        assert_eq!(shown(i64::MIN, "USD"), "-92233720368547758.08 USD");
    }

    #[test]
    fn a_quoted_text_is_one_line_of_bounded_length() {
        assert_eq!(quoted("Ann\r\nBcc: x@example.com\u{2028}\u{0}"), "Ann  Bcc: x@example.com  ");
        assert_eq!(quoted(&"é".repeat(500)).chars().count(), MAX_QUOTED);
    }
}
