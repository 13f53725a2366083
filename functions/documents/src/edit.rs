//! What all changes of a document share: it is read, the next state is computed, and written on the condition that nobody else wrote it since.

use http_api::identity::SignedIn;
use http_api::{Problem, Request, Store};
use key_schema::document::{self, Document, Edit, Part};
use key_schema::id::{Born, DocumentId};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, FromItem as _, Stored};
use key_schema::request::Transaction;
use table::TransactError;

use crate::access::{no_such_document, refused, right};

/// A change that was asked for.
pub struct Asked {
    pub caller: SignedIn,
    pub id: DocumentId,
    /// The version that the client has seen.
    pub version: u64,
}

/// Who asks for a change of which document, in which version.
///
/// # Errors
/// 401, 422 for the id, 428 and 400 for If-Match.
pub fn asked(request: &Request<'_>) -> Result<Asked, Problem> {
    Ok(Asked { caller: request.signed_in()?, id: request.path("id")?, version: request.if_match()? })
}

/// A change of a document that was read.
pub struct Open<'a> {
    store: &'a Store,
    asked: &'a Asked,
    pub document: Stored<Document>,
    pub at: Instant,
    born: Born,
}

impl Asked {
    /// Reads the document that is about to be changed.
    ///
    /// # Errors
    /// 404 and 403 as [`refused`] says, 412 for another version.
    pub async fn open<'a>(&'a self, store: &'a Store) -> Result<Open<'a>, Problem> {
        let document = store.table.get(&document::edit(&self.id)?).await?;
        self.over(store, document).await
    }

    /// The same with a document that was read already.
    ///
    /// # Errors
    /// As [`Asked::open`].
    pub async fn over<'a>(&'a self, store: &'a Store, document: Option<Stored<Document>>) -> Result<Open<'a>, Problem> {
        let document = document.filter(|document| !document.deleting).ok_or_else(no_such_document)?;
        if document.meta.version != self.version {
            return Err(refused(store, &self.caller, &document, Problem::version_mismatch()).await);
        }
        let at = Instant::now();
        Ok(Open { store, asked: self, document, at, born: store.born(at)? })
    }
}

impl Open<'_> {
    /// The change, for the schema.
    pub fn edit(&self) -> Edit<'_> {
        let Self { asked, document, at, born, .. } = self;
        Edit { old: document, right: right(&asked.caller, document), by: asked.caller.id(), at: *at, born }
    }

    /// What stands against the change, to who may know of it.
    pub async fn refuse(&self, problem: Problem) -> Problem {
        refused(self.store, &self.asked.caller, &self.document, problem).await
    }

    /// Makes the change.
    ///
    /// # Errors
    /// 404 and 403 as [`refused`] says, 404 for an author who was erased, 412 when somebody else was first.
    pub async fn commit(&self, transaction: Result<Transaction<Part>, EncodeError>) -> Result<(), Problem> {
        let refusals = match self.store.table.transact(&transaction?).await {
            Ok(()) => return Ok(()),
            Err(TransactError::Refused(refusals)) => refusals,
            Err(TransactError::Table(error)) => return Err(error.into()),
        };
        if refusals.iter().any(|refusal| refusal.label == Part::Author) {
            return Err(no_such_document());
        }
        let head = refusals.iter().find(|refusal| refusal.label == Part::Document);
        let current: Stored<Document> = match head {
            // The author alone stood against it.
            None => self.document.clone(),
            Some(refusal) => {
                let item = refusal.item.as_deref().ok_or_else(no_such_document)?;
                Stored::from_item(item.clone()).map_err(Problem::internal)?
            }
        };
        if current.deleting {
            return Err(no_such_document());
        }
        Err(refused(self.store, &self.asked.caller, &current, Problem::version_mismatch()).await)
    }
}
