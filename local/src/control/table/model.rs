use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use key_schema::pattern::{Consistency, Pattern};
use key_schema::registry;
use serde_json::{Value, json};
use template::{Index, Projection};

use super::super::Control;
use super::parsed;
use crate::built_in;
use crate::dynamodb::REGION;

/// Returns the table's definition with all access patterns, routes, costs and prices.
pub(in super::super) async fn model(State(control): State<Arc<Control>>) -> Json<Value> {
    let (table, explorer) = (&control.table, &control.explorer);
    let pattern = |pattern: &&Pattern| {
        let (consistency, reason) = match pattern.consistency {
            Consistency::Eventual => ("eventual", None),
            Consistency::Strong(reason) => ("strong", Some(reason)),
            Consistency::Write => ("write", None),
        };
        json!({
            "id": pattern.id,
            "purpose": pattern.purpose,
            "operation": format!("{:?}", pattern.operation),
            "index": pattern.index.map(|index| index.name()),
            "key": pattern.key,
            "result": pattern.detail,
            "consistency": consistency,
            "consistency_reason": reason,
            "caller": pattern.callers,
            "routes": explorer.matcher().routes(pattern.id).collect::<Vec<_>>(),
        })
    };
    let area = |(name, lists): &(&str, &[&[&Pattern]])| {
        let patterns = lists.iter().flat_map(|list| list.iter()).map(pattern).collect::<Vec<_>>();
        json!({"name": name, "patterns": patterns})
    };
    Json(json!({
        "name": control.backends.table,
        "partition_key": table.key.partition,
        "sort_key": table.key.sort,
        "ttl": table.ttl_attribute,
        "writable": explorer.is_writable,
        "indexes": table.indexes.iter().map(index).collect::<Vec<_>>(),
        "areas": registry::AREAS.iter().map(area).collect::<Vec<_>>(),
        "routes": parsed(built_in::ROUTES),
        "costs": parsed(built_in::COSTS),
        "prices": {
            "read_unit": price("dynamodb.reads"),
            "write_unit": price("dynamodb.writes"),
            "region": REGION,
        },
    }))
}

fn index(index: &Index) -> Value {
    let none = Vec::new();
    let (projection, attributes) = match &index.projection {
        Projection::All => ("ALL", &none),
        Projection::KeysOnly => ("KEYS_ONLY", &none),
        Projection::Include(attributes) => ("INCLUDE", attributes),
    };
    json!({
        "name": index.name,
        "partition_key": index.key.partition,
        "sort_key": index.key.sort,
        "projection": projection,
        "attributes": attributes,
    })
}

/// Returns the price of a million units in dollars, which is the price of a unit in micro-dollars.
fn price(name: &str) -> Option<&'static str> {
    let (_, section) = built_in::PRICES.split_once(&format!("[prices.\"{name}\"]"))?;
    let line = section.lines().find(|line| line.starts_with("dollars = "))?;
    let (_, price) = line.split_once(&format!("{REGION} = \""))?;
    price.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prices_are_those_of_docs_cost_md() {
        let page = include_str!("../../../../docs/cost.md");
        let (read, write) = (price("dynamodb.reads").unwrap_or_default(), price("dynamodb.writes").unwrap_or_default());
        let sentence = format!("A million read units cost {read} dollars, and a million write units {write} dollars.");
        assert!(page.contains(&sentence), "{sentence}");
    }
}
