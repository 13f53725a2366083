//! The existing indices, and whether they are read or written.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use crate::client::SearchClient;
use crate::document::Collection;
use crate::error::SearchError;
use crate::index;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexState {
    /// The name, `<prefix>-<collection>-v<number>`.
    pub name: String,
    /// The number. A rebuild takes the next number.
    pub number: u64,
    /// Whether searches read it.
    pub read: bool,
    /// Whether changes are written to it.
    pub written: bool,
    /// The aliases. Only [`SearchClient::indices`] returns all of them. Other functions return
    /// those that begin with the alias of the collection.
    pub aliases: BTreeSet<String>,
}

impl SearchClient {
    /// Returns the existing indices of a collection, ascending by number. An index that is neither
    /// read nor written is not needed any more.
    pub async fn indices(&self, collection: Collection) -> Result<Vec<IndexState>, SearchError> {
        let path = format!("/{}", index::pattern(&self.prefix, collection));
        let answer: BTreeMap<String, Value> = self.json(Method::GET, &path, None).await?.accepted()?.parse()?;
        Ok(self.states(collection, &answer))
    }

    /// Returns those indices of the collections that have an alias. The node that manages the
    /// aliases responds, so the result is current.
    pub(crate) async fn layout(
        &self,
        collections: &[Collection],
        deadline: Instant,
    ) -> Result<BTreeMap<Collection, Vec<IndexState>>, SearchError> {
        let aliases: Vec<_> =
            collections.iter().map(|collection| format!("{}*", index::alias(&self.prefix, *collection))).collect();
        let path = format!("/_alias/{}", aliases.join(","));
        let answer = self.json_by(Method::GET, &path, None, deadline).await?;
        let answer: BTreeMap<String, Value> = answer.accepted()?.parse()?;
        Ok(collections.iter().map(|collection| (*collection, self.states(*collection, &answer))).collect())
    }

    pub(crate) async fn layout_of(&self, collection: Collection) -> Result<Vec<IndexState>, SearchError> {
        let mut layout = self.layout(&[collection], self.transport.deadline()).await?;
        Ok(layout.remove(&collection).unwrap_or_default())
    }

    fn states(&self, collection: Collection, answer: &BTreeMap<String, Value>) -> Vec<IndexState> {
        let read = index::alias(&self.prefix, collection);
        let mut states: Vec<_> = answer
            .iter()
            .filter_map(|(name, about)| {
                let (_, number) = index::parse(&self.prefix, name).filter(|parsed| parsed.0 == collection)?;
                let aliases: BTreeSet<String> = about.get("aliases")?.as_object()?.keys().cloned().collect();
                Some(IndexState {
                    number,
                    read: aliases.contains(&read),
                    written: aliases.contains(&index::write_alias(&self.prefix, collection, number)),
                    name: name.clone(),
                    aliases,
                })
            })
            .collect();
        states.sort_unstable_by_key(|state| state.number);
        states
    }

    /// Returns the collection and the write alias of one of Bodega's indices.
    pub(crate) fn write_alias(&self, index: &str) -> Result<(Collection, String), SearchError> {
        let (collection, number) = index::parse(&self.prefix, index)
            .ok_or_else(|| SearchError::Request(format!("{index} is not the name of an index with this prefix")))?;
        Ok((collection, index::write_alias(&self.prefix, collection, number)))
    }
}
