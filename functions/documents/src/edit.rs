//! The common steps of all changes of a document. A change reads the document and computes its next
//! state. It writes this state on the condition that the document is unchanged since the read.

use http_api::identity::SignedIn;
use http_api::{Problem, Request, Services};
use key_schema::document::{self, Document, DocumentAction, Edit};
use key_schema::id::{Born, DocumentId};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::request::Transaction;
use table::{Budget, Refusals};
use workflows::removal::{self, RemovalError};

use crate::access::{Access, no_such_document, refused, right, standing};

pub struct RequestedChange {
    pub caller: SignedIn,
    pub id: DocumentId,
    /// The version in the client's If-Match.
    pub version: u64,
    pub needed: Access,
}

/// Reads the caller, the document id and the version of a requested change that needs this access.
///
/// # Errors
/// 401 without a token, 422 for an invalid id, 428 without If-Match, 400 for an invalid If-Match.
pub fn read_request(request: &Request<'_>, needed: Access) -> Result<RequestedChange, Problem> {
    Ok(RequestedChange { caller: request.signed_in()?, id: request.path("id")?, version: request.if_match()?, needed })
}

pub struct OpenChange<'a> {
    services: &'a Services,
    asked: &'a RequestedChange,
    pub document: Stored<Document>,
    pub at: Instant,
    born: Born,
}

impl RequestedChange {
    /// Reads the document to change.
    ///
    /// # Errors
    /// 404 and 403 as in [`refused`], 412 for another version.
    pub async fn open<'a>(&'a self, services: &'a Services) -> Result<OpenChange<'a>, Problem> {
        let document = services.table.get(&document::read_for_update(&self.id)?).await?;
        self.open_read(services, document).await
    }

    pub async fn open_read<'a>(
        &'a self,
        services: &'a Services,
        document: Option<Stored<Document>>,
    ) -> Result<OpenChange<'a>, Problem> {
        let document = document.filter(|document| !document.deleting).ok_or_else(no_such_document)?;
        if document.meta.version != self.version {
            return Err(refused(services, &self.caller, &document, self.needed, Problem::version_mismatch()).await);
        }
        let at = Instant::now();
        Ok(OpenChange { services, asked: self, document, at, born: services.born(at)? })
    }
}

impl OpenChange<'_> {
    /// Removes the remaining texts of a discarded draft. While some remain, the table refuses every
    /// change of the content.
    ///
    /// # Errors
    /// As [`finish_discard`], and 412 when another request has changed the document.
    pub async fn settled(mut self) -> Result<Self, Problem> {
        if !self.document.discarded.is_empty() {
            let current = finish_discard(self.services, self.asked, &self.document).await?;
            let current = current.filter(|document| !document.deleting).ok_or_else(no_such_document)?;
            if current.meta.version != self.asked.version {
                return Err(Problem::version_mismatch());
            }
            self.document = current;
        }
        Ok(self)
    }

    pub fn edit(&self) -> Edit<'_> {
        let Self { asked, document, at, born, .. } = self;
        Edit { old: document, right: right(&asked.caller, document), by: asked.caller.id(), at: *at, born }
    }

    /// Returns `problem`, or 403 or 404 for callers without the needed access.
    pub async fn refuse(&self, problem: Problem) -> Problem {
        refused(self.services, &self.asked.caller, &self.document, self.asked.needed, problem).await
    }

    /// Writes the change.
    ///
    /// # Errors
    /// 404 and 403 as in [`refused`], 404 for an author who was erased, 412 when another request
    /// has changed the document.
    pub async fn commit(&self, transaction: Result<Transaction<DocumentAction>, EncodeError>) -> Result<(), Problem> {
        let Err(refusals) = self.services.table.transact(&transaction?).await? else { return Ok(()) };
        if refusals.names(DocumentAction::Author) {
            return Err(no_such_document());
        }
        let current = current(&self.document, &refusals)?;
        Err(refused(self.services, &self.asked.caller, &current, self.asked.needed, Problem::version_mismatch()).await)
    }
}

/// Returns the document that the refusal contains. If the table refused the change only because of
/// another item, returns the document that was read.
///
/// # Errors
/// 404 when the document is deleted.
pub fn current(read: &Stored<Document>, refusals: &Refusals<DocumentAction>) -> Result<Stored<Document>, Problem> {
    let current = match refusals.of(DocumentAction::Document) {
        Some(refusal) => refusal.stored::<Stored<Document>>()?,
        None => Some(read.clone()),
    };
    current.filter(|document| !document.deleting).ok_or_else(no_such_document)
}

/// Removes the remaining texts of a discarded draft, for a caller with the needed access. Returns
/// the document afterwards.
///
/// # Errors
/// 404 and 403 as in [`refused`], 503 `throttled` when the texts are too large for one request.
pub async fn finish_discard(
    services: &Services,
    asked: &RequestedChange,
    document: &Stored<Document>,
) -> Result<Option<Stored<Document>>, Problem> {
    if standing(services, &asked.caller, document).await? < asked.needed {
        return Err(refused(services, &asked.caller, document, asked.needed, no_such_document()).await);
    }
    let budget = Budget::begin(&services.table);
    removal::discard(&services.table, &document.id, &budget).await.map_err(removal_failed)
}

pub fn removal_failed(error: RemovalError) -> Problem {
    match error {
        RemovalError::Table(error) => error.into(),
        RemovalError::Encode(error) => error.into(),
        error => Problem::internal(error),
    }
}
