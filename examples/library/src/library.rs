use item_model::cursor::{CursorInvalid, CursorKeyError, Cursors, Scope};
use item_model::instant::Instant;
use item_model::item::{EncodeError, FromItem, Stored};
use item_model::key::KeyError;
use item_model::prelude::Born;
use item_model::request::{Query, Transaction};
use table::{Refusal, Table, TableError};

use crate::book::{self, Book, BookId, BookSummary};
use crate::loan::{self, LOAN_SECONDS, Loan, LoanAction, LoanId, LoanSummary};
use crate::member::{self, Email, Member, MemberAction, MemberId};

/// A reason why an operation was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("there is no such member")]
    NoSuchMember,
    #[error("there is no such book")]
    NoSuchBook,
    #[error("the member has no such loan")]
    NoSuchLoan,
    #[error("another member has the email address {0}")]
    EmailTaken(Email),
    /// The member has changed since it was read.
    #[error("the member has changed: read it again")]
    Stale,
    /// Every copy of the book is out.
    #[error("every copy of the book is out")]
    NoFreeCopy,
    #[error("the book was returned already")]
    AlreadyReturned,
    #[error("the generated id exists already: send the request again")]
    IdTaken,
    #[error(transparent)]
    Cursor(#[from] CursorInvalid),
    /// The cursor of the next page cannot be sealed.
    #[error(transparent)]
    Seal(#[from] CursorKeyError),
    /// A value is too large, or cannot be stored in the table.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The table did not execute the request.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl From<KeyError> for LibraryError {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// The library, over its table.
#[derive(Debug)]
pub struct Library {
    table: Table,
    cursors: Cursors,
}

impl Library {
    /// Opens the library over a table that [`crate::schema::create_table`] has created.
    #[must_use]
    pub const fn new(table: Table, cursors: Cursors) -> Self {
        Self { table, cursors }
    }

    /// Returns the table. Its meter records the requests.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    pub async fn register(&self, email: Email, name: &str, now: Instant) -> Result<Stored<Member>, LibraryError> {
        let id = MemberId::generate(now, random());
        let born = Born::of(&id);
        let member = Stored::new(Member { id, email, name: name.to_owned() }, born, now);
        let refused = |refusal: &Refusal<MemberAction>| match refusal.action {
            MemberAction::Email => LibraryError::EmailTaken(member.email.clone()),
            MemberAction::Member | MemberAction::OldEmail => LibraryError::IdTaken,
        };
        self.transact(&member::register(&member)?, refused).await?;
        Ok(member)
    }

    pub async fn member(&self, id: &MemberId) -> Result<Stored<Member>, LibraryError> {
        self.table.get(&member::get(id)?).await?.ok_or(LibraryError::NoSuchMember)
    }

    /// Changes the name of a member that was read, and returns the member.
    ///
    /// # Errors
    /// [`LibraryError::Stale`] when the member has changed since then, and others.
    pub async fn rename(
        &self,
        read: &Stored<Member>,
        name: &str,
        now: Instant,
    ) -> Result<Stored<Member>, LibraryError> {
        let write = member::rename(read, &name.to_owned(), now)?;
        self.table.update(&write).await?.map_err(|refusal| match refusal.item {
            None => LibraryError::NoSuchMember,
            Some(_) => LibraryError::Stale,
        })
    }

    /// Changes the email address of a member that was read.
    ///
    /// # Errors
    /// [`LibraryError::EmailTaken`], [`LibraryError::Stale`] when the member has changed since it
    /// was read, and others.
    pub async fn change_email(&self, read: &Stored<Member>, email: Email, now: Instant) -> Result<(), LibraryError> {
        let refused = |refusal: &Refusal<MemberAction>| match (refusal.action, &refusal.item) {
            (MemberAction::Email, _) => LibraryError::EmailTaken(email.clone()),
            (MemberAction::Member, None) => LibraryError::NoSuchMember,
            (MemberAction::Member, Some(_)) | (MemberAction::OldEmail, _) => LibraryError::Stale,
        };
        self.transact(&member::change_email(read, &email, now)?, refused).await
    }

    /// Adds a book with some copies.
    pub async fn add_book(
        &self,
        title: &str,
        author: &str,
        copies: u64,
        now: Instant,
    ) -> Result<Stored<Book>, LibraryError> {
        let id = BookId::generate(now, random());
        let born = Born::of(&id);
        let book = Book { id, title: title.to_owned(), author: author.to_owned(), copies, free: copies };
        let book = Stored::new(book, born, now);
        self.table.write(&book::add(&book)?).await?.map_err(|_| LibraryError::IdTaken)?;
        Ok(book)
    }

    pub async fn book(&self, id: &BookId) -> Result<Stored<Book>, LibraryError> {
        self.table.get(&book::get(id)?).await?.ok_or(LibraryError::NoSuchBook)
    }

    /// Lists all books by title. `cursor` continues after an earlier page.
    pub async fn books(
        &self,
        limit: usize,
        cursor: Option<&str>,
        now: Instant,
    ) -> Result<ListPage<BookSummary>, LibraryError> {
        self.list(book::list()?, &[], limit, cursor, now).await
    }

    pub async fn lend(&self, member: &MemberId, book: &BookId, now: Instant) -> Result<Stored<Loan>, LibraryError> {
        let id = LoanId::generate(now, random());
        let born = Born::of(&id);
        let due_at = now.plus_seconds(LOAN_SECONDS);
        let loan = Loan { id, member_id: member.clone(), book_id: book.clone(), due_at, returned_at: None };
        let loan = Stored::new(loan, born, now);
        let refused = |refusal: &Refusal<LoanAction>| match (refusal.action, &refusal.item) {
            (LoanAction::Loan, _) => LibraryError::IdTaken,
            (LoanAction::Copy, None) => LibraryError::NoSuchBook,
            (LoanAction::Copy, Some(_)) => LibraryError::NoFreeCopy,
            (LoanAction::Member, _) => LibraryError::NoSuchMember,
        };
        self.transact(&loan::lend(&loan)?, refused).await?;
        Ok(loan)
    }

    pub async fn loan(&self, member: &MemberId, id: &LoanId) -> Result<Stored<Loan>, LibraryError> {
        self.table.get(&loan::get(member, id)?).await?.ok_or(LibraryError::NoSuchLoan)
    }

    /// Renews a loan: the book is due [`LOAN_SECONDS`] from now.
    pub async fn renew(&self, member: &MemberId, id: &LoanId, now: Instant) -> Result<Stored<Loan>, LibraryError> {
        let write = loan::renew(member, id, now.plus_seconds(LOAN_SECONDS), now)?;
        self.table.update(&write).await?.map_err(|refusal| match refusal.item {
            None => LibraryError::NoSuchLoan,
            Some(_) => LibraryError::AlreadyReturned,
        })
    }

    /// Ends a loan, because the member has returned the book. A loan ends only once.
    pub async fn give_back(&self, member: &MemberId, id: &LoanId, now: Instant) -> Result<(), LibraryError> {
        // This read is only for the book's id. The write's condition checks that the loan is out.
        let loan = self.loan(member, id).await?;
        let refused = |refusal: &Refusal<LoanAction>| match (refusal.action, &refusal.item) {
            (LoanAction::Loan, Some(_)) => LibraryError::AlreadyReturned,
            (LoanAction::Loan | LoanAction::Member, _) => LibraryError::NoSuchLoan,
            (LoanAction::Copy, _) => LibraryError::NoSuchBook,
        };
        self.transact(&loan::give_back(&loan, now)?, refused).await
    }

    /// Lists a member's loans that are out, by due date.
    pub async fn loans(
        &self,
        member: &MemberId,
        limit: usize,
        cursor: Option<&str>,
        now: Instant,
    ) -> Result<ListPage<LoanSummary>, LibraryError> {
        self.list(loan::of_member(member)?, &[("member", member.as_str())], limit, cursor, now).await
    }

    /// Lists all overdue loans, by due date.
    pub async fn overdue(
        &self,
        limit: usize,
        cursor: Option<&str>,
        now: Instant,
    ) -> Result<ListPage<LoanSummary>, LibraryError> {
        self.list(loan::overdue(now)?, &[], limit, cursor, now).await
    }

    /// Executes a transaction. `refused` maps the first refused action to an error.
    async fn transact<L: Clone>(
        &self,
        transaction: &Transaction<L>,
        refused: impl Fn(&Refusal<L>) -> LibraryError,
    ) -> Result<(), LibraryError> {
        self.table.transact(transaction).await?.map_err(|refusals| match refusals.first() {
            Some(refusal) => refused(refusal),
            None => TableError::Rejected("a refusal names no action".to_owned()).into(),
        })
    }

    /// Reads a page. A cursor is valid only for the same list with the same parameters.
    async fn list<T: FromItem>(
        &self,
        query: Query<T>,
        parameters: &[(&str, &str)],
        limit: usize,
        cursor: Option<&str>,
        now: Instant,
    ) -> Result<ListPage<T>, LibraryError> {
        let scope = Scope { list: query.pattern().id, parameters, caller: "" };
        let after = cursor.map(|cursor| self.cursors.open(&scope, cursor, now)).transpose()?;
        let read = self.table.query(&query.limit(limit).after(after)).await?;
        let next = read.next.map(|sort_key| self.cursors.seal(&scope, &sort_key, now)).transpose()?;
        Ok(ListPage { items: read.items, next })
    }
}

fn random() -> [u8; 10] {
    std::array::from_fn(|_| fastrand::u8(..))
}
