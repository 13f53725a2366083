//! The provider's books: the payments and refunds, and the execution of calls.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hyper::StatusCode;
use serde_json::{Value, json};

use super::calls::{Act, Call, Pages};
use super::intents::{Intent, NewIntent, Status};
use super::refunds::{NewRefund, Refund};
use super::search::Query;
use super::webhooks::Event;
use super::wire::Refusal;
use super::{API_VERSION, MAX_INTENTS, MAX_REFUNDS, full};

/// The amounts of one payment, in minor units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub intent: String,
    pub currency: String,
    pub metadata: BTreeMap<String, String>,
    pub status: Status,
    pub amount: i64,
    /// The authorised amount that is not captured yet.
    pub capturable: i64,
    pub captured: i64,
    /// The captured money that went back. Pending refunds count, and failed refunds do not.
    pub refunded: i64,
}

/// The request that causes an event. A steering method has no request.
#[derive(Debug, Clone, Default)]
pub(super) struct Cause {
    pub(super) request_id: Option<String>,
    pub(super) key: Option<String>,
}

#[derive(Debug)]
pub(super) struct Books {
    /// By a number that increases with each new payment.
    intents: BTreeMap<u64, Intent>,
    numbers: HashMap<String, u64>,
    pub(super) desk: Desk,
}

/// The part of the books that one payment can change.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) now: i64,
    pub(super) cause: Cause,
    pub(super) refunds: Vec<Refund>,
    pub(super) outbox: Vec<Event>,
    due: BTreeSet<(i64, String)>,
    random: fastrand::Rng,
}

impl Desk {
    /// Returns a new id, such as `pi_3` with 23 further characters. The seed determines all ids.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        let random: String = (0..23).map(|_| self.random.alphanumeric()).collect();
        format!("{prefix}3{random}")
    }

    pub(super) fn expires_at(&mut self, at: i64, intent: &str) {
        self.due.insert((at, intent.to_owned()));
    }

    /// An event shows the object at its time: <https://docs.stripe.com/api/events/object>.
    pub(super) fn emit(&mut self, kind: &str, intent: &str, object: &Value) {
        let id = self.id("evt_");
        let body = json!({
            "id": id, "object": "event", "api_version": API_VERSION, "created": self.now, "data": {"object": object},
            "livemode": false, "pending_webhooks": 1,
            "request": {"id": self.cause.request_id, "idempotency_key": self.cause.key}, "type": kind,
        });
        let (kind, intent) = (kind.to_owned(), intent.to_owned());
        self.outbox.push(Event { id, kind, intent, created: self.now, body: body.to_string() });
    }
}

impl Books {
    pub(super) fn new(seed: u64) -> Self {
        let desk = Desk {
            now: 0,
            cause: Cause::default(),
            refunds: Vec::new(),
            outbox: Vec::new(),
            due: BTreeSet::new(),
            random: fastrand::Rng::with_seed(seed),
        };
        Self { intents: BTreeMap::new(), numbers: HashMap::new(), desk }
    }

    /// Ends the authorisations that were not captured in time.
    pub(super) fn expire(&mut self) {
        while let Some((at, id)) = self.desk.due.first().cloned().filter(|(at, _)| *at <= self.desk.now) {
            self.desk.due.remove(&(at, id.clone()));
            self.change(&id, |desk, intent| intent.expire(desk));
        }
    }

    /// Returns `None` if the payment is unknown.
    pub(super) fn change<T>(&mut self, id: &str, act: impl FnOnce(&mut Desk, &mut Intent) -> T) -> Option<T> {
        let intent = self.intents.get_mut(self.numbers.get(id)?)?;
        let events = self.desk.outbox.len();
        let result = act(&mut self.desk, intent);
        if self.desk.outbox.len() > events {
            intent.changed = self.desk.now;
        }
        Some(result)
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = Account> {
        self.intents.values().map(|intent| Account {
            intent: intent.id.clone(),
            currency: intent.new.currency.clone(),
            metadata: intent.new.metadata.clone(),
            status: intent.status,
            amount: intent.new.amount,
            capturable: intent.capturable(),
            captured: intent.received(),
            refunded: intent.refunded(),
        })
    }

    pub(super) fn execute(&mut self, call: Call, search_lag: i64) -> Result<Value, Refusal> {
        let expand = call.is_charge_expanded;
        match call.act {
            Act::Create { new, is_confirmed } => self.create(new, is_confirmed, expand),
            Act::Update { id, metadata, description } => self.act(&id, expand, |desk, intent| {
                metadata.apply(&mut intent.new.metadata)?;
                intent.changed = desk.now;
                intent.new.description = description.or_else(|| intent.new.description.take());
                Ok(())
            }),
            Act::Confirm { id, method } => self.act(&id, expand, |desk, intent| intent.confirm(desk, method)),
            Act::Capture { id, amount } => self.act(&id, expand, |desk, intent| intent.capture(desk, amount)),
            Act::Cancel { id, reason } => self.act(&id, expand, |desk, intent| intent.cancel(desk, reason)),
            Act::Get { id } => {
                let intent = self.numbers.get(&id).and_then(|number| self.intents.get(number));
                intent.map(|intent| intent.view(expand)).ok_or_else(|| no_intent(&id, "intent"))
            }
            Act::List { created, page } => {
                let times = created.from..=created.to;
                let (data, has_more) = self.page(&page, expand, |intent| times.contains(&intent.created))?;
                Ok(list("/v1/payment_intents", &data, has_more))
            }
            Act::Search { query, page } => self.search(&query, &page, expand, search_lag),
            Act::Refund(new) => self.refund(new),
            Act::GetRefund { id } => {
                let found = self.desk.refunds.iter().find(|refund| refund.id == id);
                found.map(Refund::view).ok_or_else(|| Refusal::not_found("refund", &id, "refund"))
            }
            Act::ListRefunds { intent, page } => self.list_refunds(intent.as_deref(), &page),
        }
    }

    fn create(&mut self, new: NewIntent, is_confirmed: bool, expand: bool) -> Result<Value, Refusal> {
        if self.intents.len() >= MAX_INTENTS {
            return Err(full("payments", MAX_INTENTS));
        }
        let intent = Intent::new(&mut self.desk, new);
        let id = intent.id.clone();
        let number = self.intents.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        self.numbers.insert(id.clone(), number);
        self.intents.insert(number, intent);
        self.act(&id, expand, |desk, intent| if is_confirmed { intent.confirm(desk, None) } else { Ok(()) })
    }

    fn list_refunds(&self, intent: Option<&str>, page: &Pages) -> Result<Value, Refusal> {
        let refunds = &self.desk.refunds;
        let found = refunds.iter().rev().filter(|refund| intent.is_none_or(|intent| refund.intent == intent));
        let (data, has_more) = paged(found, |refund| &refund.id, page)?;
        let data: Vec<Value> = data.into_iter().map(Refund::view).collect();
        Ok(list("/v1/refunds", &data, has_more))
    }

    fn act(
        &mut self,
        id: &str,
        expand: bool,
        act: impl FnOnce(&mut Desk, &mut Intent) -> Result<(), Refusal>,
    ) -> Result<Value, Refusal> {
        let acted = self.change(id, |desk, intent| act(desk, intent).map(|()| intent.view(expand)));
        acted.unwrap_or_else(|| Err(no_intent(id, "intent")))
    }

    fn refund(&mut self, new: NewRefund) -> Result<Value, Refusal> {
        if self.desk.refunds.len() >= MAX_REFUNDS {
            return Err(full("refunds", MAX_REFUNDS));
        }
        let id = new.intent.clone();
        let refunded = self.change(&id, |desk, intent| intent.refund(desk, new));
        refunded.unwrap_or_else(|| Err(no_intent(&id, "payment_intent").status(StatusCode::BAD_REQUEST)))
    }

    /// The search does not find a payment for some time after its latest change.
    fn search(&self, query: &Query, page: &Pages, expand: bool, lag: i64) -> Result<Value, Refusal> {
        let until = self.desk.now.saturating_sub(lag);
        let (data, has_more) = self.page(page, expand, |intent| intent.changed <= until && query.matches(intent))?;
        let next = data.last().filter(|_| has_more).and_then(|intent| intent.get("id"));
        let url = "/v1/payment_intents/search";
        Ok(json!({"object": "search_result", "url": url, "has_more": has_more, "data": data, "next_page": next}))
    }

    fn page(
        &self,
        page: &Pages,
        expand: bool,
        is_wanted: impl Fn(&Intent) -> bool,
    ) -> Result<(Vec<Value>, bool), Refusal> {
        let found = self.intents.values().rev().filter(|intent| is_wanted(intent) || page.is_after(&intent.id));
        let (data, has_more) = paged(found, |intent| &intent.id, page)?;
        Ok((data.into_iter().map(|intent| intent.view(expand)).collect(), has_more))
    }
}

fn no_intent(id: &str, param: &str) -> Refusal {
    Refusal::not_found("payment_intent", id, param)
}

fn list(url: &str, data: &[Value], has_more: bool) -> Value {
    json!({"object": "list", "url": url, "has_more": has_more, "data": data})
}

/// Returns a page of the items, and whether more items follow.
fn paged<'b, T>(
    mut items: impl Iterator<Item = &'b T>,
    id: impl Fn(&T) -> &str,
    page: &Pages,
) -> Result<(Vec<&'b T>, bool), Refusal> {
    if let Some(after) = &page.after
        && !items.any(|item| id(item) == after)
    {
        return Err(no_intent(after, "starting_after").status(StatusCode::BAD_REQUEST));
    }
    let mut data: Vec<&T> = items.take(page.limit + 1).collect();
    let has_more = data.len() > page.limit;
    data.truncate(page.limit);
    Ok((data, has_more))
}
