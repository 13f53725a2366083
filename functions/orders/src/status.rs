//! Moving an order through its life.

use http_api::read::{one_of, text};
use http_api::{Code, Problem, Request, Response, Store};
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::order::{self, OrderStatus, Part, Step};
use table::TransactError;

use crate::view::{Whole, no_such_order};

/// What an order may be told to become.
const TARGETS: &[&str] = &["paid", "picking", "shipped", "delivered", "cancelled", "returned"];

/// POST orders/{id}/status. Head, status list, history, the customer's copy and, where goods return, every line's stock move in one transaction,
/// on the condition that the head is at the version of the If-Match.
pub async fn change(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: OrderId = request.path("id")?;
    let mut body = request.object()?;
    let to = body.required("to", one_of::<OrderStatus>(TARGETS));
    let note = body.optional("note", text(1..=1000));
    let mut carrier = body.optional("carrier", text(1..=128));
    let mut tracking = body.optional("tracking", text(1..=128));
    if to.is_some_and(|to| to != OrderStatus::Shipped) {
        if matches!(carrier, Some(Some(_))) {
            carrier = body.refuse("carrier", "belongs to a shipped order");
        }
        if matches!(tracking, Some(Some(_))) {
            tracking = body.refuse("tracking", "belongs to a shipped order");
        }
    }
    let (to, note, carrier, tracking) = body.finish((to, note, carrier, tracking))?;
    let items = store.table.query(&order::edit(&id)?).await?.items;
    let mut whole = Whole::visible(items, Instant::now()).ok_or_else(no_such_order)?;
    // Somebody else's order is not there, whatever the version.
    request.owner(&whole.order.customer_id).map_err(|_| no_such_order())?;
    let version = request.if_match()?;
    if version != whole.order.meta.version {
        return Err(Problem::version_mismatch());
    }
    let from = whole.order.status;
    if !caller.is_staff() && to != OrderStatus::Cancelled {
        return Err(Problem::new(Code::Forbidden, "This step is for staff only."));
    }
    if whole.order.expires_at.is_some() {
        return Err(Problem::new(Code::IllegalTransition, "The order is retired and stays as it is."));
    }
    if !from.may_become(to) {
        return Err(Problem::new(Code::IllegalTransition, format!("A {from} order cannot become {to}.")));
    }
    if !caller.is_staff() && !from.owner_may(to) {
        return Err(Problem::new(Code::Forbidden, format!("A {from} order can be {to} by staff only.")));
    }
    // Two clocks may differ; the history is ordered by its instants and never runs backward.
    let last = whole.history.iter().map(|step| step.at).max().unwrap_or(Instant::MIN);
    let (at, by) = (Instant::now().max(last.plus_millis(1)), caller.id().as_str());
    let event = order::history(&whole.order, to, at, by, note.clone());
    let step = Step { order: &whole.order, lines: &whole.lines, to, at, by, note, carrier, tracking };
    match store.table.transact(&order::advance(step)?).await {
        Ok(()) => {}
        Err(TransactError::Refused(refusals)) if refusals.iter().any(|refusal| refusal.label == Part::Order) => {
            return Err(Problem::version_mismatch());
        }
        Err(TransactError::Refused(refusals)) => {
            return Err(Problem::internal(format!(
                "unexpected refusal of {:?}",
                refusals.first().map(|refusal| refusal.label)
            )));
        }
        Err(TransactError::Table(error)) => return Err(error.into()),
    }
    whole.order.data.status = to;
    whole.order.meta.version += 1;
    whole.history.push(event);
    Ok(Response::ok(&whole.view()).etag(whole.order.meta.version))
}
