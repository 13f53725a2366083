//! Probes whether an engine has the features that the index needs.

use std::time::{SystemTime, UNIX_EPOCH};

use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::{NDJSON, SearchClient};
use crate::document::{Collection, document_id};
use crate::error::SearchError;
use crate::index;
use crate::transport::{Call, is_transient};

/// The maximum number of attempts while another client is probing.
const ATTEMPTS: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineSupport {
    /// Whether a write can require that its target is an alias, so that a write to a deleted index
    /// is refused. Without this feature such a write may create an index that no client reads.
    pub require_alias: bool,
    /// Whether a deletion can depend on the state of the document. Without this feature tombstones
    /// are not purged.
    pub conditional_delete: bool,
    /// Whether the engine can make writes visible on request. Without this feature they become
    /// visible after a delay.
    pub refresh: bool,
}

impl SearchClient {
    /// Tests whether the engine respects external versions: it must refuse an older write and
    /// accept the same version again. The test writes a document of its own, which no search finds,
    /// and removes it afterwards. The indices must exist ([`SearchClient::ensure_indices`]).
    ///
    /// # Errors
    /// [`SearchError::Unsupported`] when versions are not respected. The index must not be used
    /// then, because an old write could overwrite a newer one.
    pub async fn probe(&self) -> Result<EngineSupport, SearchError> {
        let indices = self.layout_of(Collection::Products).await?;
        let written = indices.iter().find(|index| index.written);
        let number =
            written.map(|index| index.number).ok_or_else(|| unsupported("no index of products has a write alias"))?;
        let target = index::write_alias(&self.prefix, Collection::Products, number);
        let at = self.probe_versions(&target).await?;
        let conditional_delete = self.probe_delete(&target, &at).await?;
        let require_alias = self.probe_require_alias().await?;
        let path = format!("/{}/_refresh", index::name(&self.prefix, Collection::Products, number));
        let refresh = self.json(Method::POST, &path, None).await?.status.is_success();
        Ok(EngineSupport { require_alias, conditional_delete, refresh })
    }

    /// Writes a version, then a version lower by one, then the first of these versions again.
    /// Returns the resulting state of the document.
    async fn probe_versions(&self, target: &str) -> Result<State, SearchError> {
        for attempt in 1..=ATTEMPTS {
            // The version contains the time, so a later probe nearly always has a higher version.
            let version = now().saturating_add(attempt.saturating_mul(1_000)).saturating_add(fastrand::u64(0..1_000));
            let write = |version| write_lines(target, Some(version));
            let lines = [write(version), write(version.saturating_sub(1)), write(version)].concat();
            let [first, older, same] = self.probe_bulk(lines).await?;
            match (first.status, older.status, same.status) {
                // Another probe has written a higher version.
                (409, _, _) => {}
                (200..=299, 409, 200..=299) => return Ok(same.state()),
                (200..=299, 200..=299, _) => return Err(unsupported("a write of an older version was accepted")),
                (200..=299, 409, 409) if attempt == ATTEMPTS => {
                    return Err(unsupported("a write of the same version was refused"));
                }
                (200..=299, 409, 409) => {}
                (status, _, _) => return Err(unsupported(&format!("a write with a version had status {status}"))),
            }
        }
        let reason = "another probe is under way".to_owned();
        Err(SearchError::Unavailable { attempts: ATTEMPTS.try_into().unwrap_or(u32::MAX), reason })
    }

    /// Deletes the document, first with a condition that does not hold, then with one that holds.
    /// Returns whether the engine respects such conditions.
    async fn probe_delete(&self, target: &str, at: &State) -> Result<bool, SearchError> {
        let id = probe_id();
        let delete = |seq_no: u64| {
            let condition =
                json!({"_index": target, "_id": id, "if_seq_no": seq_no, "if_primary_term": at.primary_term});
            format!("{}\n", json!({"delete": condition}))
        };
        let lines = delete(at.seq_no.saturating_add(1_000_000)) + &delete(at.seq_no);
        let [wrong, right] = self.probe_bulk(lines).await?;
        // If the second deletion has a conflict, another probe has written the document.
        let works = wrong.status == 409 && matches!(right.status, 200..=299 | 409);
        if !works {
            let [_] = self.probe_bulk(format!("{}\n", json!({"delete": {"_index": target, "_id": id}}))).await?;
        }
        Ok(works)
    }

    /// Writes to an alias that does not exist. Returns whether the engine refuses the write.
    async fn probe_require_alias(&self) -> Result<bool, SearchError> {
        let nowhere = format!("{}-probe-{:x}", self.prefix, fastrand::u64(..));
        let [written] = self.probe_bulk(write_lines(&nowhere, None)).await?;
        if written.status == 404 {
            return Ok(true);
        }
        self.json(Method::DELETE, &format!("/{nowhere}"), None).await?;
        Ok(false)
    }

    async fn probe_bulk<const N: usize>(&self, lines: String) -> Result<[Item; N], SearchError> {
        let call = Call { method: Method::POST, path: "/_bulk", content_type: NDJSON, body: lines.into() };
        let answer = self.transport.call(&call, self.transport.deadline()).await?.accepted()?;
        let items: Vec<Item> = answer.parse::<BulkAnswer>()?.items.into_iter().map(|item| item.index).collect();
        if let Some(item) = items.iter().find(|item| is_transient(item.status) || item.status >= 500) {
            return Err(SearchError::Unavailable { attempts: 1, reason: format!("status {}", item.status) });
        }
        items
            .try_into()
            .map_err(|_| SearchError::Answer("the number of outcomes differs from the number of operations".to_owned()))
    }
}

/// Returns the bulk lines that write a tombstone with a very old date. If the probe cannot delete
/// it, no search finds it, and the next purge removes it.
fn write_lines(target: &str, version: Option<u64>) -> String {
    let id = probe_id();
    let mut action = json!({"_index": target, "_id": id, "require_alias": true});
    if let (Some(action), Some(version)) = (action.as_object_mut(), version) {
        action.insert("version".to_owned(), version.into());
        action.insert("version_type".to_owned(), "external_gte".into());
    }
    let source = json!({"document_id": id, "deleted": true, "deleted_at": "1970-01-01T00:00:00.000Z"});
    format!("{}\n{source}\n", json!({"index": action}))
}

fn probe_id() -> String {
    document_id("probe", "")
}

/// Returns milliseconds since 1970, as a version that increases from probe to probe.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn unsupported(what: &str) -> SearchError {
    SearchError::Unsupported(format!("{what}, so an old change could overwrite a newer one"))
}

/// The state of a document: the numbers of its last write.
struct State {
    seq_no: u64,
    primary_term: u64,
}

#[derive(Deserialize)]
struct BulkAnswer {
    items: Vec<BulkItem>,
}

#[derive(Deserialize)]
struct BulkItem {
    #[serde(alias = "delete")]
    index: Item,
}

#[derive(Deserialize)]
struct Item {
    status: u16,
    #[serde(rename = "_seq_no")]
    seq_no: Option<u64>,
    #[serde(rename = "_primary_term")]
    primary_term: Option<u64>,
}

impl Item {
    /// Returns the state after the write. If the response lacks the sequence number or the primary
    /// term, the conditional deletion fails, and the probe reports no support for it.
    fn state(&self) -> State {
        State { seq_no: self.seq_no.unwrap_or_default(), primary_term: self.primary_term.unwrap_or(1) }
    }
}
