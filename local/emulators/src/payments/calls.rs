//! The supported calls, with their parameters. A call that cannot be read is not executed, so an
//! idempotency key does not store its refusal.

use hyper::{Method, StatusCode};

use super::cards::card;
use super::intents::{NO_METHOD, NewIntent, no_method};
use super::refunds::NewRefund;
use super::search::{Query, parse};
use super::wire::{Form, Metadata, MetadataChange, Refusal, missing};

/// <https://docs.stripe.com/currencies>: at most eight digits, and at least about 50 US cents.
const MAX_AMOUNT: i64 = 99_999_999;
const MIN_AMOUNTS: [(&str, i64); 5] = [("usd", 50), ("eur", 50), ("chf", 50), ("gbp", 30), ("jpy", 50)];

/// <https://docs.stripe.com/api/pagination>
const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: i64 = 100;

#[derive(Debug)]
pub(super) struct Call {
    pub(super) act: Act,
    pub(super) is_charge_expanded: bool,
}

#[derive(Debug)]
pub(super) enum Act {
    Create { new: NewIntent, is_confirmed: bool },
    Update { id: String, metadata: MetadataChange, description: Option<String> },
    Confirm { id: String, method: Option<String> },
    Capture { id: String, amount: Option<i64> },
    Cancel { id: String, reason: Option<&'static str> },
    Get { id: String },
    List { created: Created, page: Pages },
    Search { query: Query, page: Pages },
    Refund(NewRefund),
    GetRefund { id: String },
    ListRefunds { intent: Option<String>, page: Pages },
}

#[derive(Debug)]
pub(super) struct Pages {
    pub(super) after: Option<String>,
    pub(super) limit: usize,
}

impl Pages {
    pub(super) fn is_after(&self, id: &str) -> bool {
        self.after.as_deref() == Some(id)
    }
}

/// Bounds of the time of creation, both inclusive.
#[derive(Debug)]
pub(super) struct Created {
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Call {
    pub(super) fn read(method: &Method, path: &str, mut form: Form) -> Result<Self, Refusal> {
        let unknown = || {
            let message = format!("Unrecognized request URL ({method}: {path}).");
            Refusal::invalid(message).status(StatusCode::NOT_FOUND)
        };
        let parts: Vec<&str> = path.strip_prefix("/v1/").ok_or_else(unknown)?.split('/').collect();
        let id = |id: &str| id.to_owned();
        let act = match (method.as_str(), &parts[..]) {
            ("POST", ["payment_intents"]) => create(&mut form)?,
            ("GET", ["payment_intents"]) => Act::List { created: created(&mut form)?, page: pages(&mut form)? },
            ("GET", ["payment_intents", "search"]) => {
                let page = Pages { after: form.text("page")?, limit: limit(&mut form)? };
                Act::Search { query: parse(&form.required("query")?)?, page }
            }
            ("GET", ["payment_intents", intent]) => Act::Get { id: id(intent) },
            ("POST", ["payment_intents", intent]) => {
                let (metadata, description) = (form.metadata()?, form.text("description")?);
                Act::Update { id: id(intent), metadata, description }
            }
            ("POST", ["payment_intents", intent, "confirm"]) => {
                form.text("return_url")?;
                Act::Confirm { id: id(intent), method: shared_token(&mut form)?.or(payment_method(&mut form)?) }
            }
            ("POST", ["payment_intents", intent, "capture"]) => {
                Act::Capture { id: id(intent), amount: form.amount("amount_to_capture")? }
            }
            ("POST", ["payment_intents", intent, "cancel"]) => {
                let reasons = ["duplicate", "fraudulent", "requested_by_customer", "abandoned"];
                Act::Cancel { id: id(intent), reason: form.choice("cancellation_reason", &reasons)? }
            }
            ("POST", ["refunds"]) => refund(&mut form)?,
            ("GET", ["refunds"]) => Act::ListRefunds { intent: form.text("payment_intent")?, page: pages(&mut form)? },
            ("GET", ["refunds", refund]) => Act::GetRefund { id: id(refund) },
            _ => return Err(unknown()),
        };
        let is_charge_expanded = expansion(&mut form, &act)?;
        form.end()?;
        Ok(Self { act, is_charge_expanded })
    }
}

fn create(form: &mut Form) -> Result<Act, Refusal> {
    let amount = form.amount("amount")?.ok_or_else(|| missing("amount"))?;
    let currency = form.required("currency")?.to_ascii_lowercase();
    if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Err(Refusal::invalid(format!("Invalid currency: {currency}.")).param("currency"));
    }
    check(amount, &currency)?;
    let is_manual = form.choice("capture_method", &["automatic", "manual"])? == Some("manual");
    let (method, is_confirmed) = (payment_method(form)?, form.flag("confirm")?);
    if is_confirmed && method.is_none() {
        return Err(Refusal::unexpected_state(NO_METHOD));
    }
    let mut metadata = Metadata::new();
    form.metadata()?.apply(&mut metadata)?;
    form.text("return_url")?;
    // Stripe chooses the payment methods by the account's settings. This account has cards.
    form.flag("automatic_payment_methods[enabled]")?;
    form.choice("automatic_payment_methods[allow_redirects]", &["always", "never"])?;
    let mut method_types = form.list("payment_method_types");
    if method_types.is_empty() {
        method_types.push("card".to_owned());
    }
    let description = form.text("description")?;
    let new = NewIntent { amount, currency, is_manual, method, method_types, metadata, description };
    Ok(Act::Create { new, is_confirmed })
}

fn check(amount: i64, currency: &str) -> Result<(), Refusal> {
    let least = MIN_AMOUNTS.iter().find(|(known, _)| *known == currency).map_or(1, |(_, least)| *least);
    let (message, code) = if amount < least {
        (format!("Amount must be at least {least} {currency} in minor units"), "amount_too_small")
    } else if amount > MAX_AMOUNT {
        (format!("Amount must be no more than {MAX_AMOUNT} {currency} in minor units"), "amount_too_large")
    } else {
        return Ok(());
    };
    Err(Refusal::invalid(message).code(code).param("amount"))
}

fn payment_method(form: &mut Form) -> Result<Option<String>, Refusal> {
    let method = form.text("payment_method")?;
    match method.as_deref().filter(|method| card(method).is_none()) {
        Some(unknown) => Err(no_method(unknown)),
        None => Ok(method),
    }
}

/// Reads a token that somebody else has got for a test card: `spt_card_visa` stands for `pm_card_visa`.
fn shared_token(form: &mut Form) -> Result<Option<String>, Refusal> {
    let Some(token) = form.text("payment_method_data[shared_payment_granted_token]")? else { return Ok(None) };
    let method = token.replacen("spt_", "pm_", 1);
    if card(&method).is_none() { Err(no_method(&token)) } else { Ok(Some(method)) }
}

fn refund(form: &mut Form) -> Result<Act, Refusal> {
    let (intent, amount) = (form.required("payment_intent")?, form.amount("amount")?);
    let reason = form.choice("reason", &["duplicate", "fraudulent", "requested_by_customer"])?;
    let mut metadata = Metadata::new();
    form.metadata()?.apply(&mut metadata)?;
    Ok(Act::Refund(NewRefund { intent, amount, reason, metadata }))
}

fn limit(form: &mut Form) -> Result<usize, Refusal> {
    let limit = form.integer("limit")?.map(|limit| usize::try_from(limit.clamp(1, MAX_LIMIT)).map(|n| (limit, n)));
    match limit {
        None => Ok(DEFAULT_LIMIT),
        Some(Ok((1..=MAX_LIMIT, limit))) => Ok(limit),
        _ => Err(Refusal::invalid("Invalid limit: must be between 1 and 100").param("limit")),
    }
}

fn pages(form: &mut Form) -> Result<Pages, Refusal> {
    Ok(Pages { after: form.text("starting_after")?, limit: limit(form)? })
}

fn created(form: &mut Form) -> Result<Created, Refusal> {
    let (gte, gt) = (form.integer("created[gte]")?, form.integer("created[gt]")?);
    let (lte, lt) = (form.integer("created[lte]")?, form.integer("created[lt]")?);
    let after = gt.map_or(i64::MIN, |gt| gt.saturating_add(1));
    let before = lt.map_or(i64::MAX, |lt| lt.saturating_sub(1));
    Ok(Created { from: gte.unwrap_or(i64::MIN).max(after), to: lte.unwrap_or(i64::MAX).min(before) })
}

/// Returns whether the charge is expanded (<https://docs.stripe.com/api/expanding_objects>).
fn expansion(form: &mut Form, act: &Act) -> Result<bool, Refusal> {
    let known = match act {
        Act::List { .. } | Act::Search { .. } => "data.latest_charge",
        Act::Refund(_) | Act::GetRefund { .. } | Act::ListRefunds { .. } => "",
        _ => "latest_charge",
    };
    let wanted = form.list("expand");
    match wanted.iter().find(|name| *name != known) {
        Some(other) => Err(Refusal::invalid(format!("This property cannot be expanded ({other}).")).param("expand")),
        None => Ok(!wanted.is_empty()),
    }
}
