//! `_bulk`: many writes and deletions in one request, each with a separate outcome.

use axum::http::StatusCode;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::cluster::{Cluster, Target};
use super::index::Written;
use super::problem::Problem;
use super::strict::{Strict, only_entry};
use super::version::WriteVersion;

const MAX_ID_BYTES: usize = 512;

/// A write of a bulk request. Without a source it is a deletion.
pub(super) struct Operation<'a> {
    index: String,
    id: String,
    version: WriteVersion,
    require_alias: bool,
    source: Option<&'a RawValue>,
}

/// An invalid line makes the whole request fail, because the meaning of later lines is then
/// uncertain.
pub(super) fn parse(body: &str) -> Result<Vec<Operation<'_>>, Problem> {
    let lines = body
        .strip_suffix('\n')
        .ok_or_else(|| Problem::illegal("The bulk request must be terminated by a newline [\\n]"))?;
    let mut lines = lines.split('\n').enumerate();
    let mut operations = Vec::new();
    while let Some((number, action)) = lines.next() {
        let malformed = |reason: String| Problem::illegal(format!("Malformed line [{}]: {reason}", number + 1));
        let action: Value = serde_json::from_str(action).map_err(|error| malformed(error.to_string()))?;
        let source = if action.get("delete").is_some() {
            None
        } else {
            let (_, source) = lines.next().ok_or_else(|| malformed("no document follows".to_owned()))?;
            Some(serde_json::from_str(source).map_err(|error| malformed(error.to_string()))?)
        };
        operations.push(Operation::parse(&action, source).map_err(|problem| malformed(problem.reason))?);
    }
    Ok(operations)
}

/// For each operation, `refuse` decides whether it is throttled.
pub(super) fn run(
    cluster: &Cluster,
    operations: &[Operation<'_>],
    refuse: impl Fn() -> bool,
) -> Result<Value, Problem> {
    let mut items = Vec::with_capacity(operations.len());
    let mut errors = false;
    // Consecutive operations usually name the same index. So the index is looked up and locked only
    // once for each group of them.
    for group in operations.chunk_by(|a, b| a.index == b.index && a.require_alias == b.require_alias) {
        let Some(first) = group.first() else { continue };
        let target = first.target(cluster);
        let mut index = target.as_ref().ok().map(Target::lock);
        for operation in group {
            let outcome = match (&target, &mut index) {
                _ if refuse() => Err(Problem::throttled()),
                (Ok(_), Some(index)) => match operation.source {
                    Some(source) => index.write(&operation.id, operation.version, source),
                    None => index.delete(&operation.id, operation.version),
                },
                (Err(problem), _) => Err(problem.clone()),
                (Ok(_), None) => Err(Problem::internal("the index is gone")),
            };
            errors |= outcome.is_err();
            let name = target.as_ref().map_or(operation.index.as_str(), |target| target.name.as_str());
            items.push(operation.item(name, &outcome));
        }
        if let Some(index) = &mut index {
            index.flush()?;
        }
    }
    Ok(json!({"took": 0, "errors": errors, "items": items}))
}

impl<'a> Operation<'a> {
    fn parse(action: &Value, source: Option<&'a RawValue>) -> Result<Self, Problem> {
        let (kind, target) = only_entry("action", action)?;
        if !matches!(kind, "index" | "delete") {
            return Err(Problem::illegal(format!("the action [{kind}] is not supported")));
        }
        let mut object = Strict::new(kind, target)?;
        let id = object.required_text("_id")?;
        let state = (object.number("if_seq_no")?, object.number("if_primary_term")?);
        let version = match (object.text("version_type")?, object.number("version")?, state) {
            (None, None, (Some(seq_no), Some(primary_term))) => WriteVersion::State { seq_no, primary_term },
            (None | Some("internal"), None, (None, None)) => WriteVersion::Internal,
            (Some("external"), Some(version), (None, None)) => WriteVersion::External(version),
            (Some("external_gte"), Some(version), (None, None)) => WriteVersion::ExternalGte(version),
            _ => {
                return Err(Problem::illegal("[version], [version_type] and [if_seq_no] do not fit together"));
            }
        };
        let operation = Self {
            index: object.required_text("_index")?.to_owned(),
            id: id.to_owned(),
            version,
            require_alias: object.flag("require_alias")?.unwrap_or(false),
            source,
        };
        object.finish()?;
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return Err(Problem::illegal(format!("id must be 1 to {MAX_ID_BYTES} bytes long but has {}", id.len())));
        }
        if matches!(version, WriteVersion::External(v) | WriteVersion::ExternalGte(v) if i64::try_from(v).is_err()) {
            return Err(Problem::illegal("[version] must be a positive long"));
        }
        Ok(operation)
    }

    fn target(&self, cluster: &Cluster) -> Result<Target, Problem> {
        match cluster.target(&self.index) {
            Ok(target) if self.require_alias && !target.by_alias => Err(Problem::not_an_alias(&self.index)),
            Err(problem) if self.require_alias && problem.status == StatusCode::NOT_FOUND => {
                Err(Problem::not_an_alias(&self.index))
            }
            other => other,
        }
    }

    fn item(&self, index: &str, outcome: &Result<Written, Problem>) -> Value {
        let (kind, done, undone) = match self.source {
            Some(_) => ("index", "updated", "created"),
            None => ("delete", "deleted", "not_found"),
        };
        let result = match outcome {
            Ok(written) => {
                let (status, result) = match (written.existed, self.source) {
                    (true, _) => (StatusCode::OK, done),
                    (false, Some(_)) => (StatusCode::CREATED, undone),
                    (false, None) => (StatusCode::NOT_FOUND, undone),
                };
                json!({
                    "_index": index, "_id": self.id, "_version": written.version, "result": result,
                    "_seq_no": written.seq_no, "_primary_term": written.primary_term, "status": status.as_u16(),
                })
            }
            Err(problem) => json!({
                "_index": index, "_id": self.id, "status": problem.status.as_u16(), "error": problem.to_json(),
            }),
        };
        json!({kind: result})
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn one_invalid_line_makes_the_whole_request_fail() {
        for (body, part) in [
            ("{}", "terminated by a newline"),
            ("{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n", "no document follows"),
            ("{\"update\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{}\n", "[update] is not supported"),
            ("{\"delete\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{}\n", "no document follows"),
            (
                "{\"delete\":{\"_index\":\"a\",\"_id\":\"1\",\"if_seq_no\":1,\"if_primary_term\":1,\"version\":2}}\n",
                "do not fit",
            ),
            ("{\"index\":{\"_index\":\"a\",\"_id\":\"1\",\"pipeline\":\"p\"}}\n{}\n", "does not support [pipeline]"),
            ("{\"index\":{\"_index\":\"a\",\"_id\":\"\"}}\n{}\n", "1 to 512 bytes"),
            ("{\"index\":{\"_index\":\"a\",\"_id\":\"1\",\"version\":3}}\n{}\n", "do not fit"),
            ("{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\nnot json\n", "Malformed line [1]"),
        ] {
            let problem = parse(body).err().unwrap();
            assert_eq!(problem.status, StatusCode::BAD_REQUEST);
            assert!(problem.reason.contains(part), "{}", problem.reason);
        }
    }
}
