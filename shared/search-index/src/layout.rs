//! Which indices there are, and which of them are read and written.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use crate::client::SearchClient;
use crate::document::Collection;
use crate::error::SearchError;
use crate::index;

/// One index of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexState {
    /// Its name, `<prefix>-<collection>-v<number>`.
    pub name: String,
    /// Its number; a rebuild takes the next one.
    pub number: u64,
    /// Whether searches read it.
    pub read: bool,
    /// Whether changes are written to it.
    pub written: bool,
    /// All its aliases, those of others included.
    pub aliases: BTreeSet<String>,
}

impl SearchClient {
    /// The indices of a collection that exist, ascending by number. What neither is read nor written is left over.
    pub async fn indices(&self, collection: Collection) -> Result<Vec<IndexState>, SearchError> {
        let path = format!("/{}", index::pattern(&self.prefix, collection));
        let answer: BTreeMap<String, Value> = self.json(Method::GET, &path, None).await?.accepted()?.parse()?;
        Ok(self.states(collection, &answer))
    }

    /// The indices of these collections that have an alias; the answer of the one node that decides about aliases, not of a copy.
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

    /// Like [`SearchClient::layout`], of one collection.
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

    /// The write alias of an index of ours, by the index's name.
    pub(crate) fn write_alias(&self, index: &str) -> Result<(Collection, String), SearchError> {
        let (collection, number) = index::parse(&self.prefix, index)
            .ok_or_else(|| SearchError::Request(format!("{index} is not the name of an index of this shop")))?;
        Ok((collection, index::write_alias(&self.prefix, collection, number)))
    }
}
