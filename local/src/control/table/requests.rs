use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::Control;
use super::super::answer::Problem;

/// Maximum number of items that a query or a scan evaluates.
const MAX_LIMIT: u64 = 1000;
const DEFAULT_LIMIT: u64 = 100;
/// Maximum duration of a request to the table.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The body of a request, such as `{"operation":"GetItem","request":{"Key":{…}}}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Body {
    operation: String,
    request: Map<String, Value>,
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    /// A request that names the table once.
    Single,
    /// A query or a scan.
    List,
    Batch,
    Transaction,
}

/// Sends a request to the table, and returns the table's response. Errors of the table are
/// responses, too.
pub(in super::super) async fn send(
    State(control): State<Arc<Control>>,
    body: Result<Json<Body>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(Body { operation, request }) = body.map_err(|error| Problem::bad_request(error.body_text()))?;
    let (name, kind, is_write) = match operation.as_str() {
        "GetItem" => ("GetItem", Operation::Single, false),
        "Query" => ("Query", Operation::List, false),
        "Scan" => ("Scan", Operation::List, false),
        "BatchGetItem" => ("BatchGetItem", Operation::Batch, false),
        "PutItem" => ("PutItem", Operation::Single, true),
        "UpdateItem" => ("UpdateItem", Operation::Single, true),
        "DeleteItem" => ("DeleteItem", Operation::Single, true),
        "TransactWriteItems" => ("TransactWriteItems", Operation::Transaction, true),
        other => {
            let message = format!(
                "{other} is not an operation of the explorer; the operations are GetItem, Query, BatchGetItem, Scan, \
                 PutItem, UpdateItem, DeleteItem and TransactWriteItems"
            );
            return Err(Problem::bad_request(message));
        }
    };
    if is_write && !control.explorer.is_writable {
        let message = format!("{name} changes the table; start the system with --explorer-write to allow it");
        return Err(Problem::forbidden(message));
    }
    let request = prepared(kind, request, &control.backends.table).ok_or_else(|| {
        Problem::bad_request(format!("the request has not the form of {name}, with one table and a Limit up to 1000"))
    })?;
    let began = Instant::now();
    let (status, response) = ask(&control, name, &request).await?;
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    Ok(Json(json!({"status": status, "response": response, "micros": micros})))
}

/// Sends a request to the table behind the proxy, with a time limit.
pub(super) async fn ask(control: &Control, operation: &'static str, request: &Value) -> Result<(u16, Value), Problem> {
    let asked = tokio::time::timeout(PATIENCE, control.dynamodb.ask(operation, request)).await;
    match asked {
        Ok(answer) => answer.map_err(|error| Problem::failed(&error)),
        Err(_) => Err(Problem::timed_out("the table did not respond within 5 seconds")),
    }
}

/// Completes a request: with the table's name, a limit, and the wish for the consumed units. Returns
/// `None` for a request with the wrong form.
fn prepared(kind: Operation, mut request: Map<String, Value>, table: &str) -> Option<Value> {
    match kind {
        Operation::Single => drop(request.insert("TableName".to_owned(), table.into())),
        Operation::List => {
            let limit = request.get("Limit").map_or(Some(DEFAULT_LIMIT), Value::as_u64)?;
            if !(1..=MAX_LIMIT).contains(&limit) {
                return None;
            }
            request.insert("Limit".to_owned(), limit.into());
            request.insert("TableName".to_owned(), table.into());
        }
        Operation::Batch => {
            let tables = request.get_mut("RequestItems")?.as_object_mut()?;
            let own = std::mem::take(tables);
            let mut own = own.into_values();
            let (Some(keys), None) = (own.next(), own.next()) else { return None };
            tables.insert(table.to_owned(), keys);
        }
        Operation::Transaction => {
            for action in request.get_mut("TransactItems")?.as_array_mut()? {
                for action in action.as_object_mut()?.values_mut() {
                    action.as_object_mut()?.insert("TableName".to_owned(), table.into());
                }
            }
        }
    }
    request.insert("ReturnConsumedCapacity".to_owned(), "INDEXES".into());
    Some(Value::Object(request))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(kind: Operation, request: Value) -> Option<Value> {
        prepared(kind, request.as_object().unwrap().clone(), "shop")
    }

    #[test]
    fn a_request_gets_the_tables_name_and_a_limit() {
        let units = |mut request: Value| {
            request.as_object_mut().unwrap().insert("ReturnConsumedCapacity".to_owned(), "INDEXES".into());
            Some(request)
        };
        assert_eq!(of(Operation::Single, json!({"TableName": "x"})), units(json!({"TableName": "shop"})));
        assert_eq!(of(Operation::List, json!({})), units(json!({"TableName": "shop", "Limit": 100})));
        assert_eq!(of(Operation::List, json!({"Limit": 7})), units(json!({"TableName": "shop", "Limit": 7})));
        let batch = |tables: Value| of(Operation::Batch, json!({ "RequestItems": tables }));
        assert_eq!(batch(json!({"x": {"Keys": []}})), units(json!({"RequestItems": {"shop": {"Keys": []}}})));
        let transaction = json!({"TransactItems": [{"Put": {"TableName": "x"}}, {"Delete": {}}]});
        let complete = json!({"TransactItems": [{"Put": {"TableName": "shop"}}, {"Delete": {"TableName": "shop"}}]});
        assert_eq!(of(Operation::Transaction, transaction), units(complete));
        for wrong in [json!({"Limit": 0}), json!({"Limit": 1001}), json!({"Limit": "7"})] {
            assert_eq!(of(Operation::List, wrong), None);
        }
        assert_eq!(batch(json!({"x": {}, "y": {}})), None);
        assert_eq!(of(Operation::Transaction, json!({"TransactItems": [7]})), None);
    }
}
