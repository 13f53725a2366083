//! `ops payments reconcile`: compares the card payments of a day with the provider's list.
//!
//! The command reads both sides completely: the provider's payments that were created on the day, and
//! the table's card payments that began on it. A difference of one payment is repaired by the workflow
//! that also handles webhooks: it reads the provider's present state, and records it with everything
//! that follows. So a payment whose webhooks were all lost pays its order, or goes back.
//!
//! A refund that was made at the provider without Bodega is only reported, because only a person knows
//! what it was for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ::payments::{Account, Intent, Provider, RefundStatus};
use clap::Subcommand;
use key_schema::entity::AnyEntity;
use key_schema::id::{OrderId, PaymentId};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Item};
use key_schema::order::{self, PlacedOrder};
use key_schema::payment::{OperationKind, OperationState, Payment, PaymentMethod};
use serde::Serialize;
use table::Table;

use crate::error::OpsError;
use crate::items::Items;
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::progress::Progress;

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// The maximum number of differences in the summary.
const SHOWN: usize = 50;

/// The commands of `ops payments`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare the card payments of a day with the payment provider's list.
    #[command(after_help = "Examples:\n  ops payments reconcile --day 2026-11-28\n  ops payments reconcile --day \
                            2026-11-28 --fix\n\nExit status 1 means that differences are left.")]
    Reconcile {
        /// The UTC day on which the payments began.
        #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
        day: Instant,
        /// Repair the differences.
        #[arg(long)]
        fix: bool,
        /// The maximum number of read capacity units per second.
        #[arg(long, value_name = "N")]
        max_read_units: Option<u32>,
    },
}

fn day(text: &str) -> Result<Instant, String> {
    format!("{text}T00:00:00.000Z").parse().map_err(|_| "must be a day such as 2026-11-28".to_owned())
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    let Command::Reconcile { day, fix, max_read_units } = command;
    let account = Account::from_env().map_err(OpsError::failed)?;
    let keys = account.keys().await.map_err(OpsError::failed)?;
    let items = Items::from_env().await?;
    let reconciled = reconcile(&items, keys.provider.as_ref(), day, fix, &Pace::new(max_read_units)).await?;
    Ok(Outcome::new(&reconciled, reconciled.is_clean()))
}

/// What differs between the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The provider has a payment that no order of the table has.
    Unknown,
    /// The table has a payment that the provider's list lacks.
    Missing,
    /// Status or amounts differ.
    State,
    /// A refund was made or has failed at the provider, and the table has another sum.
    Refunds,
    /// The provider's amount has a form that Bodega cannot express.
    Unreadable,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    pub difference: Difference,
    /// The provider's id of the payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment: Option<PaymentId>,
    pub repaired: bool,
}

#[derive(Debug, Default, Serialize)]
pub struct Reconciled {
    /// The provider's payments of the day.
    pub compared: usize,
    /// The table's payments of the day.
    pub known: usize,
    pub found: Vec<Found>,
}

impl Reconciled {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.found.iter().all(|found| found.repaired)
    }
}

impl fmt::Display for Reconciled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { compared, known, found } = self;
        writeln!(f, "{compared} payments at the provider, {known} in the table, {} differences", found.len())?;
        for Found { difference, intent, order, payment, repaired } in found.iter().take(SHOWN) {
            let or = |text: Option<&str>| text.unwrap_or("-").to_owned();
            let (intent, order) = (or(intent.as_deref()), or(order.as_ref().map(OrderId::as_str)));
            let payment = or(payment.as_ref().map(PaymentId::as_str));
            let end = if *repaired { "repaired" } else { "LEFT" };
            writeln!(f, "  {difference:?}: {intent}, order {order}, payment {payment}: {end}")?;
        }
        match found.len().checked_sub(SHOWN) {
            Some(more) if more > 0 => writeln!(f, "  and {more} more: see --json"),
            _ => Ok(()),
        }
    }
}

/// Compares the payments that began on a UTC day, and repairs differences if `fix` is set.
///
/// # Errors
/// [`OpsError`]. What was repaired before stays.
pub async fn reconcile(
    items: &Items,
    provider: &dyn Provider,
    day: Instant,
    fix: bool,
    pace: &Pace,
) -> Result<Reconciled, OpsError> {
    let (table, until) = (items.table(), day.plus_seconds(DAY_SECONDS));
    let mut result = Reconciled::default();
    let (mut seen, mut after) = (BTreeSet::new(), None);
    loop {
        let page = provider.created(day, until, after.as_deref()).await.map_err(OpsError::failed)?;
        for intent in page.unreadable {
            let (order, payment, repaired) = (None, None, false);
            seen.insert(intent.clone());
            result.found.push(Found {
                difference: Difference::Unreadable,
                intent: Some(intent),
                order,
                payment,
                repaired,
            });
        }
        for intent in page.items {
            result.compared += 1;
            seen.insert(intent.id.clone());
            result.found.extend(compare(&table, provider, &intent, fix).await?);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    // The clocks of both sides may differ, so a payment near midnight is looked up by its id.
    for (id, payment) in of_day(items, day, until, pace).await? {
        result.known += 1;
        let Some(intent) = payment.intent.clone().filter(|intent| !seen.contains(intent)) else { continue };
        let read = provider.read(&intent).await;
        let (order, payment_id) = (Some(payment.order_id.clone()), Some(id));
        match read {
            Ok(read) => result.found.extend(compare(&table, provider, &read, fix).await?),
            Err(error) => {
                eprintln!("{intent}: {error}");
                let (difference, intent, payment) = (Difference::Missing, Some(intent), payment_id);
                result.found.push(Found { difference, intent, order, payment, repaired: false });
            }
        }
    }
    Ok(result)
}

/// Reads the table's card payments that began on a day.
async fn of_day(
    items: &Items,
    day: Instant,
    until: Instant,
    pace: &Pace,
) -> Result<BTreeMap<PaymentId, Payment>, OpsError> {
    let found = RefCell::new(BTreeMap::new());
    let progress = Progress::new("payments", items.estimate().await?);
    let take = async |page: Vec<Item>| {
        for item in page {
            if let Ok(AnyEntity::Payment(payment)) = AnyEntity::from_item(item)
                && payment.method == PaymentMethod::Card
                && (day..until).contains(&payment.at)
            {
                found.borrow_mut().insert(payment.id.clone(), payment.data);
            }
        }
        Ok(())
    };
    items.scan(&["Payment"], pace, &progress, take).await?;
    Ok(found.into_inner())
}

/// Compares a payment of the provider with the table.
async fn compare(
    table: &Table,
    provider: &dyn Provider,
    intent: &Intent,
    fix: bool,
) -> Result<Option<Found>, OpsError> {
    let found = |difference, order: Option<OrderId>, payment: Option<PaymentId>| Found {
        difference,
        intent: Some(intent.id.clone()),
        order,
        payment,
        repaired: false,
    };
    let Some(id) = &intent.order else { return Ok(Some(found(Difference::Unknown, None, None))) };
    let Some(order) = read(table, id).await? else {
        return Ok(Some(found(Difference::Unknown, Some(id.clone()), None)));
    };
    let Some(difference) = differs(provider, &order, intent).await? else { return Ok(None) };
    let payment = workflows::payments::of_intent(&order, &intent.id).map(|payment| payment.id.clone());
    let mut found = found(difference, Some(id.clone()), payment);
    if fix {
        let settled = workflows::payments::settle(table, provider, id, Some(&intent.id)).await;
        if let Some(settled) = settled.map_err(OpsError::failed)? {
            // The repair changes the provider's books, too: it sends captures and cancellations.
            let after = provider.read(&intent.id).await.map_err(OpsError::failed)?;
            found.repaired = differs(provider, &settled.order, &after).await?.is_none();
        }
    }
    Ok(Some(found))
}

async fn read(table: &Table, id: &OrderId) -> Result<Option<PlacedOrder>, OpsError> {
    Ok(PlacedOrder::of(table.query(&order::read_for_update(id)?).await?.items))
}

/// Returns how an order's payment differs from the provider's.
async fn differs(
    provider: &dyn Provider,
    order: &PlacedOrder,
    intent: &Intent,
) -> Result<Option<Difference>, OpsError> {
    let Some(payment) = workflows::payments::of_intent(order, &intent.id) else {
        return Ok(Some(Difference::Unknown));
    };
    if payment.status != workflows::payments::status_of(intent) || payment.captured != intent.captured.amount {
        return Ok(Some(Difference::State));
    }
    if payment.captured == 0 {
        return Ok(None);
    }
    let refunds = provider.refunds(&intent.id).await.map_err(OpsError::failed)?;
    let made = refunds.iter().filter(|refund| refund.status != RefundStatus::Failed);
    let with_key: i64 = made.clone().filter(|refund| refund.key.is_some()).map(|refund| refund.amount.amount).sum();
    let all: i64 = made.map(|refund| refund.amount.amount).sum();
    // The provider also lists what a partial capture has released.
    let released = intent.amount.amount.saturating_sub(intent.captured.amount);
    let is_settled = !order.operations.iter().any(|known| {
        known.payment_id == payment.id && known.kind == OperationKind::Refund && known.state == OperationState::Unknown
    });
    let is_same = payment.refunded == with_key && all.saturating_sub(with_key) <= released;
    Ok((!is_same && is_settled).then_some(Difference::Refunds))
}
