//! Begins payments of orders, and sends their operations to the payment provider.
//!
//! A request writes an operation before its call of the payment provider, and then runs the workflow
//! that sends it ([`workflows::payments`]). If the provider gives no usable response, or the function
//! ends, the cashier continues.

use std::time::Duration;

use ::payments::{AccountError, PaymentError};
use http_api::{Code, Once, Problem};
use key_schema::id::{OperationId, OrderId, PaymentId};
use key_schema::idempotency::StoredResponse;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::{self, OrderAction, OrderStatus, PlacedOrder, Step};
use key_schema::payment::{
    Ledger, LedgerError, OperationKind, OperationState, Payment, PaymentMethod, PaymentOperation,
};
use key_schema::wallet::{self, Wallet, WalletError};
use table::{Refusals, TableError, retry_on_conflict};
use workflows::payments::{Settled, is_late, settle};
use workflows::staging;

use crate::place::workflow_failed;
use crate::{Shop, no_such_order, visible};

/// The longest time that a request waits for the payment provider. The cashier does the rest.
const PATIENCE: Duration = Duration::from_secs(12);

/// The longest time for each of the three steps of a payment with a token. Together they fit into the
/// time of a function behind API Gateway.
const STEP: Duration = Duration::from_secs(8);

/// Whether a payment was begun now, was begun before, or belongs to the first request with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    Now,
    Before,
    Replayed,
}

/// A payment that was begun.
#[derive(Debug)]
pub struct Known {
    pub id: PaymentId,
    /// The provider's id, if the provider may have a later state than the table.
    pub intent: Option<String>,
}

/// How long a payment that the provider has not created keeps the customer from another one. The
/// provider repeats a stored error for 24 hours.
const STUCK: Duration = Duration::from_secs(60);

/// Writes the payment. `by` is the caller who pays, or `None` for the guest who placed the order. Returns `None` if the order has changed since it was read.
pub async fn begin(
    shop: &Shop,
    by: Option<&str>,
    id: &OrderId,
    method: PaymentMethod,
    amount: Option<Money>,
    once: Option<&Once>,
) -> Result<Option<(Known, Begun)>, Problem> {
    let services = &shop.services;
    let order = shop.order(id).await?;
    if let Some(once) = once
        && let Some(id) = replayed(shop, once).await?
    {
        let intent = order.payments.iter().find(|known| known.id == id).and_then(|known| known.intent.clone());
        return Ok(Some((Known { id, intent }, Begun::Replayed)));
    }
    if order.lacks_payment() {
        return Ok(None);
    }
    let (at, total) = (order.next_step_at(Instant::now()), order.head.total);
    let by = by.unwrap_or_else(|| order.head.customer_id.as_str());
    let mut ledger = order.ledger(at);
    if !ledger.takes_money() {
        let detail = "The order takes no money: only a pending order does.";
        return Err(Problem::new(Code::IllegalTransition, detail));
    }
    let due = ledger.due();
    if due == 0 {
        return Err(Problem::new(
            Code::IllegalTransition,
            "There is nothing to pay. Only staff can confirm this order.",
        ));
    }
    let wanted = amount.unwrap_or(Money::new(due, total.currency));
    let is_left = |operation: &PaymentOperation| match operation.kind {
        OperationKind::Cancel => operation.state.is_unsettled(),
        OperationKind::Create => {
            let age = at.as_millis().saturating_sub(operation.at.as_millis());
            operation.state == OperationState::Unknown && u128::try_from(age).is_ok_and(|age| age > STUCK.as_millis())
        }
        OperationKind::Capture | OperationKind::Refund => false,
    };
    let is_same = |known: &&Payment| {
        method == PaymentMethod::Card
            && known.method == method
            && known.status.is_open()
            && known.amount == wanted
            && !order.operations.iter().any(|other| other.payment_id == known.id && is_left(other))
    };
    if let Some(Payment { id, intent, .. }) = ledger.payments().iter().find(is_same) {
        return Ok(Some((Known { id: id.clone(), intent: intent.clone() }, Begun::Before)));
    }
    let refuse = |field: &str, detail: String| {
        Err(Problem::new(Code::InvalidBody, "The amount cannot be paid for this order.")
            .error(format!("/amount/{field}"), detail))
    };
    if wanted.currency != total.currency {
        return refuse("currency", format!("must be {}, the currency of the order", total.currency));
    }
    if wanted.amount > due {
        return refuse("amount", format!("must be at most {due}, the part of the total that is not secured yet"));
    }
    let new = PaymentId::generate(at, services.random()?);
    ledger
        .add(match method {
            PaymentMethod::Card => Payment::card(new.clone(), &order.head, wanted, shop.capture().await?, at, by),
            _ => Payment::received(new.clone(), &order.head, method, wanted, at, by),
        })
        .map_err(|error| refused(error, &order))?;
    let claim = once.map(|once| {
        let answer = StoredResponse::Payment { order_id: id.clone(), payment_id: new.clone() };
        once.claim(answer, new.born(), at)
    });
    let with: Vec<_> = claim.transpose()?.into_iter().map(|claim| (OrderAction::Idempotency, claim)).collect();
    let is_paid = ledger.settle();
    if write(shop, &order, &ledger, is_paid, by, &with).await? {
        return Ok(Some((Known { id: new, intent: None }, Begun::Now)));
    }
    Ok(None)
}

/// Sends the transaction of a ledger. Returns whether it was written. Otherwise the order has
/// changed, or another request has claimed the idempotency key.
pub async fn write(
    shop: &Shop,
    order: &PlacedOrder,
    ledger: &Ledger<'_>,
    is_paid: bool,
    by: &str,
    with: &[(OrderAction, key_schema::request::Guarded)],
) -> Result<bool, Problem> {
    let table = &shop.services.table;
    let step = Step { money: Some(ledger), with, ..Step::new(&order.head, &[], OrderStatus::Paid, ledger.at(), by) };
    let transaction = if is_paid { order::transition(step)? } else { order::change_payments(ledger, with)? };
    match staging::transition(table, &[], transaction).await.map_err(workflow_failed)? {
        Ok(()) => {
            match is_paid {
                true => telemetry::crash_point("orders.moved"),
                false => telemetry::crash_point("payments.begun"),
            }
            Ok(true)
        }
        Err(refusals) if is_late(&refusals) || refusals.names(OrderAction::Idempotency) => Ok(false),
        Err(refusals) if refusals.names(OrderAction::Wallet) => Err(wallet_refused(&refusals, ledger)),
        Err(refusals) => Err(Problem::unexpected(&refusals)),
    }
}

/// Returns the payment of the first request with the key, if there was one.
async fn replayed(shop: &Shop, once: &Once) -> Result<Option<PaymentId>, Problem> {
    match shop.first(once).await? {
        Some(StoredResponse::Payment { payment_id, .. }) => Ok(Some(payment_id)),
        Some(_) => Err(Problem::internal("the idempotency record of a payment has another response")),
        None => Ok(None),
    }
}

/// An order after a try to pay it.
#[derive(Debug)]
pub struct Tried {
    pub order: PlacedOrder,
    /// Whether the order shows the result. Otherwise the provider may still charge the card.
    pub is_known: bool,
}

/// Pays what is due of a guest's order with the token of a card, and returns the order as it is then.
/// A declined card is no error, because the order's payment tells it.
///
/// # Errors
/// Those of [`begin`], and 503 `card_payments_disabled`.
pub async fn pay_with_token(shop: &Shop, id: &OrderId, token: &str) -> Result<Tried, Problem> {
    let keys = shop.account.keys().await.map_err(unavailable)?;
    let begun = async || begin(shop, None, id, PaymentMethod::Card, None, None).await;
    let (known, _) = retry_on_conflict(begun).await?;
    let Settled { order, error, .. } = shop.settled_within(STEP, id, known.intent.as_deref()).await?;
    let payment = order.payments.iter().find(|payment| payment.id == known.id);
    let Some(intent) = payment.filter(|payment| payment.status.is_open()).and_then(|payment| payment.intent.clone())
    else {
        return Ok(Tried { order, is_known: error.is_none() });
    };
    let key = OperationId::generate(Instant::now(), shop.services.random()?);
    let confirm = keys.provider.confirm(&intent, token, key.as_str());
    let confirmed = tokio::time::timeout(STEP, confirm).await;
    let is_answered = !matches!(confirmed, Err(_) | Ok(Err(PaymentError::Unknown(_))));
    if let Ok(Err(error)) = confirmed {
        tracing::info!(order = %id, %error, "a payment was not confirmed");
    }
    // Whatever the response was, the provider's present state of the payment tells the result.
    let Settled { order, error, .. } = shop.settled_within(STEP, id, Some(&intent)).await?;
    Ok(Tried { order, is_known: is_answered && error.is_none() })
}

/// Cancels a guest's order that is not paid, gives its stock back, and releases what was authorised.
/// `with` are the writes that must happen together with it. Returns whether it was cancelled: otherwise
/// the order has changed.
pub async fn cancel_unpaid(
    shop: &Shop,
    order: &PlacedOrder,
    with: &[(OrderAction, key_schema::request::Guarded)],
) -> Result<bool, Problem> {
    let (head, lines, at) = (&order.head, &order.lines, order.next_step_at(Instant::now()));
    let mut ledger = order.ledger(at);
    ledger.release_all();
    let money = ledger.is_changed().then_some(&ledger);
    let by = head.customer_id.as_str();
    let step = Step { money, with, ..Step::new(head, lines, OrderStatus::Cancelled, at, by) };
    let moved = staging::transition(&shop.services.table, lines, order::transition(step)?).await;
    if moved.map_err(workflow_failed)?.is_err() {
        return Ok(false);
    }
    telemetry::crash_point("orders.moved");
    if ledger.is_unsettled() {
        // The order is cancelled, so a failure here is none of the request. The cashier goes on.
        if let Err(problem) = shop.settled(&head.id, None).await {
            tracing::warn!(order = %head.id, %problem, "the payments are left to the cashier");
        }
    }
    Ok(true)
}

/// Explains why an order's payments do not allow a change.
pub fn refused(error: LedgerError, order: &PlacedOrder) -> Problem {
    let currency = order.head.total.currency;
    match error {
        LedgerError::NoPayment => Problem::not_found("payment"),
        LedgerError::Authorised(left) => Problem::new(
            Code::AmountExceedsAuthorised,
            format!("Of the authorised amount, {left} {currency} (minor units) can be captured."),
        ),
        LedgerError::Captured(left) => Problem::new(
            Code::AmountExceedsCaptured,
            format!("Of the captured amount, {left} {currency} (minor units) can be refunded."),
        ),
        LedgerError::Status | LedgerError::TooMany => {
            Problem::new(Code::IllegalTransition, format!("This is not possible now: {error}."))
        }
    }
}

/// Returns the problem of a deployment whose keys of the provider are missing or unreadable.
pub fn unavailable(error: AccountError) -> Problem {
    match error {
        AccountError::Off => Problem::new(Code::CardPaymentsDisabled, "This shop takes no card payments."),
        AccountError::Unreadable(_) => Problem::unavailable(error),
    }
}

impl Shop {
    /// Reads an order before its payments change.
    pub async fn order(&self, id: &OrderId) -> Result<PlacedOrder, Problem> {
        let items = self.services.table.query(&order::read_for_update(id)?).await?.items;
        visible(items, Instant::now()).ok_or_else(no_such_order)
    }

    /// Returns the stored response to the first request with the key.
    pub async fn first(&self, once: &Once) -> Result<Option<StoredResponse>, Problem> {
        let record = self.services.table.get(&key_schema::idempotency::get(once.scope())?).await?;
        Ok(once.first(record.as_deref(), Instant::now())?.cloned())
    }

    /// Sends the operations of an order, and returns the order. Without an account, or without a
    /// response in time, the operations stay for the cashier.
    pub async fn settled(&self, id: &OrderId, hint: Option<&str>) -> Result<Settled, Problem> {
        self.settled_within(PATIENCE, id, hint).await
    }

    async fn settled_within(&self, time: Duration, id: &OrderId, hint: Option<&str>) -> Result<Settled, Problem> {
        let keys = match self.account.keys().await {
            Ok(keys) => keys,
            Err(AccountError::Off) => {
                return Ok(Settled { order: self.order(id).await?, intents: Vec::new(), error: None });
            }
            Err(error) => return Err(unavailable(error)),
        };
        let sent = settle(&self.services.table, keys.provider.as_ref(), id, hint);
        match tokio::time::timeout(time, sent).await {
            Ok(Ok(Some(settled))) => Ok(settled),
            Ok(Ok(None)) => Err(no_such_order()),
            Ok(Err(error)) => {
                tracing::warn!(order = %id, %error, "the payments of an order are left to the cashier");
                let error = Some(PaymentError::Unknown(error.to_string()));
                Ok(Settled { order: self.order(id).await?, intents: Vec::new(), error })
            }
            Err(_) => {
                tracing::warn!(order = %id, "no time was left for the payments of an order");
                let error = Some(PaymentError::Unknown("no time was left".to_owned()));
                Ok(Settled { order: self.order(id).await?, intents: Vec::new(), error })
            }
        }
    }
}

fn wallet_in(refusals: &Refusals<OrderAction>) -> Option<Stored<Wallet>> {
    refusals.of(OrderAction::Wallet)?.stored().ok().flatten()
}

/// Explains why the table refused to change the wallet.
pub fn wallet_refused(refusals: &Refusals<OrderAction>, ledger: &Ledger<'_>) -> Problem {
    let wallet = wallet_in(refusals);
    let (held, Some(moved)) = (wallet.as_deref(), ledger.moved()) else {
        return Problem::unexpected(refusals);
    };
    let error = match moved.amount {
        ..0 => wallet::minus(held, Money::new(moved.amount.saturating_neg(), moved.currency)).err(),
        _ => wallet::plus(held, moved).err(),
    };
    match error {
        // The wallet now has enough money, so it has changed. A retry would succeed.
        None => TableError::Contended.into(),
        Some(WalletError::Insufficient) => {
            let detail = "The wallet's balance in the order's currency is too low. Nothing was paid.";
            Problem::new(Code::InsufficientFunds, detail)
        }
        Some(error) => Problem::new(Code::Conflict, format!("The wallet cannot move this amount: it {error}.")),
    }
}
