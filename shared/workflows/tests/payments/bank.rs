//! A provider of card payments in memory, with faults.
//!
//! It is the second implementation of [`Provider`], next to Stripe's. [`Books`] does the work
//! without any waiting, so that the model can clone it. [`Bank`] shares the books and adds faults.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::money::Money;
use payments::{Answer, Capture, Intent, IntentPage, IntentStatus, PaymentError, Provider, Refund, RefundStatus};

/// How long a key repeats its first response, as at Stripe.
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub id: String,
    pub key: String,
    pub order: OrderId,
    pub amount: Money,
    pub capture: Capture,
    pub status: IntentStatus,
    pub captured: i64,
    pub refunds: Vec<(String, i64, RefundStatus)>,
}

impl Account {
    /// Returns the amount that went back, without the refunds that failed.
    pub fn refunded(&self) -> i64 {
        self.refunds.iter().filter(|(_, _, status)| *status != RefundStatus::Failed).map(|(_, amount, _)| amount).sum()
    }

    pub fn authorised(&self) -> i64 {
        if self.status == IntentStatus::Authorised { self.amount.amount } else { 0 }
    }

    /// Returns the customer's money that the shop holds.
    pub fn held(&self) -> i64 {
        self.authorised() + self.captured - self.refunded()
    }

    fn intent(&self) -> Intent {
        let money = |amount| Money::new(amount, self.amount.currency);
        Intent {
            status: self.status,
            capturable: money(self.authorised()),
            captured: money(self.captured),
            client_secret: Some(format!("{}_secret", self.id)),
            order: Some(self.order.clone()),
            key: Some(self.key.clone()),
            ..Intent::stored(&self.id, self.amount)
        }
    }
}

/// A call that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Create(OrderId, Money, Capture),
    Capture(String, i64),
    Cancel(String),
    Refund(String, i64),
}

#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    Intent(Intent),
    Refund(Refund),
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intent(intent) => write!(f, "{intent:?}"),
            Self::Refund(refund) => write!(f, "{refund:?}"),
        }
    }
}

type Answered = Result<Reply, PaymentError>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    at: Instant,
    call: Call,
    reply: Answered,
}

/// The books of the provider. Every change adds an event, which is the id of the payment.
#[derive(Debug, Clone)]
pub struct Books {
    pub now: Instant,
    pub accounts: Vec<Account>,
    pub events: Vec<String>,
    keys: BTreeMap<String, Key>,
}

impl Books {
    pub fn new(now: Instant) -> Self {
        Self { now, accounts: Vec::new(), events: Vec::new(), keys: BTreeMap::new() }
    }

    pub fn account(&self, intent: &str) -> &Account {
        self.accounts.iter().find(|account| account.id == intent).unwrap()
    }

    fn change(&mut self, intent: &str) -> Result<&mut Account, PaymentError> {
        let found = self.accounts.iter_mut().find(|account| account.id == intent);
        found.ok_or_else(|| PaymentError::Refused("resource_missing".to_owned()))
    }

    /// Does a call once for each key, and repeats the first response for a day.
    pub fn call(&mut self, call: Call, key: &str) -> Answered {
        let is_fresh = |known: &&Key| {
            let age = self.now.as_millis() - known.at.as_millis();
            u128::try_from(age).is_ok_and(|age| age < KEY_LIFETIME.as_millis())
        };
        if let Some(known) = self.keys.get(key).filter(is_fresh) {
            return if known.call == call { known.reply.clone() } else { Err(PaymentError::KeyReused) };
        }
        let reply = self.execute(&call, key);
        self.keys.insert(key.to_owned(), Key { at: self.now, call, reply: reply.clone() });
        reply
    }

    fn execute(&mut self, call: &Call, key: &str) -> Answered {
        let refused = |code: &str| Err(PaymentError::Refused(code.to_owned()));
        let id = match call {
            Call::Create(order, amount, capture) => {
                let id = format!("pi_{}", self.accounts.len() + 1);
                let (order, status) = (order.clone(), IntentStatus::Open);
                let (key, capture, amount) = (key.to_owned(), *capture, *amount);
                self.accounts.push(Account {
                    id,
                    key,
                    order,
                    amount,
                    capture,
                    status,
                    captured: 0,
                    refunds: Vec::new(),
                });
                self.accounts.last().unwrap().id.clone()
            }
            Call::Capture(intent, amount) => {
                let account = self.change(intent)?;
                match account.status {
                    IntentStatus::Authorised if (1..=account.amount.amount).contains(amount) => {
                        (account.status, account.captured) = (IntentStatus::Captured, *amount);
                    }
                    IntentStatus::Authorised => return refused("amount_too_large"),
                    _ => return refused("payment_intent_unexpected_state"),
                }
                intent.clone()
            }
            Call::Cancel(intent) => {
                let account = self.change(intent)?;
                if matches!(account.status, IntentStatus::Captured | IntentStatus::Cancelled) {
                    return refused("payment_intent_unexpected_state");
                }
                account.status = IntentStatus::Cancelled;
                intent.clone()
            }
            Call::Refund(intent, amount) => {
                let account = self.change(intent)?;
                if account.status != IntentStatus::Captured
                    || !(1..=account.captured - account.refunded()).contains(amount)
                {
                    return refused("charge_already_refunded");
                }
                account.refunds.push((key.to_owned(), *amount, RefundStatus::Done));
                let refund = refund_of(account, account.refunds.len() - 1);
                self.events.push(intent.clone());
                return Ok(Reply::Refund(refund));
            }
        };
        self.events.push(id.clone());
        Ok(Reply::Intent(self.account(&id).intent()))
    }

    /// The customer pays with a card that has enough money. Returns whether this is possible now.
    pub fn confirm(&mut self, intent: &str) -> bool {
        let Ok(account) = self.change(intent) else { return false };
        if !matches!(account.status, IntentStatus::Open | IntentStatus::ActionRequired | IntentStatus::Processing) {
            return false;
        }
        match account.capture {
            Capture::AtOnce => (account.status, account.captured) = (IntentStatus::Captured, account.amount.amount),
            Capture::Later => account.status = IntentStatus::Authorised,
        }
        self.events.push(intent.to_owned());
        true
    }

    /// Sets the status of a payment that is not made yet: the bank declines, waits or asks.
    pub fn hold_up(&mut self, intent: &str, status: IntentStatus) -> bool {
        let Ok(account) = self.change(intent) else { return false };
        if !matches!(account.status, IntentStatus::Open | IntentStatus::ActionRequired | IntentStatus::Processing) {
            return false;
        }
        account.status = status;
        self.events.push(intent.to_owned());
        true
    }

    /// Lets a refund fail that was accepted.
    pub fn fail_refund(&mut self, key: &str) {
        for account in &mut self.accounts {
            for (known, _, status) in &mut account.refunds {
                if known == key {
                    *status = RefundStatus::Failed;
                    self.events.push(account.id.clone());
                }
            }
        }
    }

    pub fn read(&self, intent: &str) -> Result<Intent, PaymentError> {
        let found = self.accounts.iter().find(|account| account.id == intent);
        found.map(Account::intent).ok_or_else(|| PaymentError::Refused("resource_missing".to_owned()))
    }

    pub fn refunds(&self, intent: &str) -> Vec<Refund> {
        let account = self.account(intent);
        (0..account.refunds.len()).map(|number| refund_of(account, number)).collect()
    }

    pub fn find(&self, key: &str) -> Option<Intent> {
        self.accounts.iter().find(|account| account.key == key).map(Account::intent)
    }
}

fn refund_of(account: &Account, number: usize) -> Refund {
    let (key, amount, status) = &account.refunds[number];
    Refund {
        id: format!("re_{}_{number}", account.id),
        status: *status,
        amount: Money::new(*amount, account.amount.currency),
        key: Some(key.clone()),
    }
}

/// What happens to the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call does not arrive, and the caller knows.
    NotSent,
    /// The call does not arrive, and the caller does not know.
    Lost,
    /// The call has its effect, and its response is lost.
    LostResponse,
}

#[derive(Debug)]
struct Shared {
    books: Books,
    faults: VecDeque<Fault>,
    /// The number of calls after which every call fails, if there is one.
    down_after: Option<usize>,
    /// Every call that arrived, with its key.
    calls: Vec<(Call, String)>,
}

#[derive(Debug, Clone)]
pub struct Bank(Arc<Mutex<Shared>>);

impl Bank {
    pub fn open() -> Self {
        let (books, faults, calls) = (Books::new(Instant::now()), VecDeque::new(), Vec::new());
        Self(Arc::new(Mutex::new(Shared { books, faults, down_after: None, calls })))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap()
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut Books) -> T) -> T {
        act(&mut self.lock().books)
    }

    pub fn fault(&self, fault: Fault) {
        self.lock().faults.push_back(fault);
    }

    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Takes this number of calls, and no further ones.
    pub fn down_after(&self, calls: usize) {
        self.lock().down_after = Some(calls);
    }

    /// Takes calls again.
    pub fn up(&self) {
        self.lock().down_after = None;
    }

    /// Returns the calls that arrived, with their keys.
    pub fn calls(&self) -> Vec<(Call, String)> {
        self.lock().calls.clone()
    }

    async fn send<T>(&self, act: impl FnOnce(&mut Shared) -> Result<T, PaymentError>) -> Result<T, PaymentError> {
        // A worker can crash before and after the call.
        tokio::task::yield_now().await;
        let result = {
            let mut shared = self.lock();
            let fault = match &mut shared.down_after {
                Some(0) => Some(Fault::NotSent),
                Some(left) => {
                    *left -= 1;
                    None
                }
                None => shared.faults.pop_front(),
            };
            match fault {
                Some(Fault::NotSent) => Err(PaymentError::NotSent("down".to_owned())),
                Some(Fault::Lost) => Err(PaymentError::Unknown("lost".to_owned())),
                Some(Fault::LostResponse) => {
                    let _ = act(&mut shared);
                    Err(PaymentError::Unknown("lost response".to_owned()))
                }
                None => act(&mut shared),
            }
        };
        tokio::task::yield_now().await;
        result
    }

    async fn change(&self, call: Call, key: &str) -> Answered {
        self.send(|shared| {
            shared.calls.push((call.clone(), key.to_owned()));
            shared.books.call(call, key)
        })
        .await
    }
}

fn intent(reply: Answered) -> Result<Intent, PaymentError> {
    match reply? {
        Reply::Intent(intent) => Ok(intent),
        Reply::Refund(refund) => panic!("{refund:?} is no payment"),
    }
}

impl Provider for Bank {
    fn create<'a>(&'a self, order: &'a OrderId, amount: Money, capture: Capture, key: &'a str) -> Answer<'a, Intent> {
        Box::pin(async move { intent(self.change(Call::Create(order.clone(), amount, capture), key).await) })
    }

    fn read<'a>(&'a self, intent: &'a str) -> Answer<'a, Intent> {
        Box::pin(self.send(|shared| shared.books.read(intent)))
    }

    fn confirm<'a>(&'a self, intent: &'a str, _: &'a str, _: &'a str) -> Answer<'a, Intent> {
        Box::pin(self.send(|shared| {
            shared.books.confirm(intent);
            shared.books.read(intent)
        }))
    }

    fn capture<'a>(&'a self, of: &'a Intent, amount: Money, key: &'a str) -> Answer<'a, Intent> {
        Box::pin(async move { intent(self.change(Call::Capture(of.id.clone(), amount.amount), key).await) })
    }

    fn cancel<'a>(&'a self, of: &'a str, key: &'a str) -> Answer<'a, Intent> {
        Box::pin(async move { intent(self.change(Call::Cancel(of.to_owned()), key).await) })
    }

    fn refund<'a>(&'a self, of: &'a Intent, amount: Money, key: &'a str) -> Answer<'a, Refund> {
        Box::pin(async move {
            match self.change(Call::Refund(of.id.clone(), amount.amount), key).await? {
                Reply::Refund(refund) => Ok(refund),
                Reply::Intent(intent) => panic!("{intent:?} is no refund"),
            }
        })
    }

    fn refunds<'a>(&'a self, intent: &'a str) -> Answer<'a, Vec<Refund>> {
        Box::pin(self.send(|shared| Ok(shared.books.refunds(intent))))
    }

    fn find<'a>(&'a self, key: &'a str) -> Answer<'a, Option<Intent>> {
        Box::pin(self.send(|shared| Ok(shared.books.find(key))))
    }

    fn created<'a>(&'a self, _: Instant, _: Instant, _: Option<&'a str>) -> Answer<'a, IntentPage> {
        Box::pin(self.send(|shared| {
            let items = shared.books.accounts.iter().rev().map(Account::intent).collect();
            Ok(IntentPage { items, unreadable: Vec::new(), next: None })
        }))
    }
}
