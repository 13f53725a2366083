use futures::future::join_all;
use item_model::instant::Instant;
use library::LibraryError;
use library::book::BookId;
use library::loan::{LOAN_SECONDS, LoanId, LoanSummary};
use library::member::MemberId;

use crate::{TestLibrary, now};

const DAY: i64 = 24 * 60 * 60;

fn days(days: i64) -> Instant {
    now().plus_seconds(days * DAY)
}

/// Returns the overdue loans, read in pages of two.
async fn overdue(library: &TestLibrary, at: Instant) -> Vec<LoanSummary> {
    let (mut loans, mut cursor) = (Vec::new(), None);
    loop {
        let page = library.overdue(2, cursor.as_deref(), at).await.unwrap();
        loans.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return loans;
        }
    }
}

fn ids(loans: &[LoanSummary]) -> Vec<&LoanId> {
    loans.iter().map(|loan| &loan.id).collect()
}

#[tokio::test]
async fn three_of_twenty_concurrent_borrowers_get_the_three_copies() {
    let library = TestLibrary::open().await;
    let book = library.book_of("Emma", 3).await;
    let names: Vec<String> = (0..20).map(|number| format!("member{number}")).collect();
    let members = join_all(names.iter().map(|name| library.member(name))).await;
    let results = join_all(members.iter().map(|member| library.lend(&member.id, &book.id, now()))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(LibraryError::NoFreeCopy))));
    let book = library.book(&book.id).await.unwrap();
    assert_eq!((book.free, book.meta.version), (0, 1), "a loan changed the version of the book");
    library.assert_whole(&book).await;
    assert_eq!(overdue(&library, days(29)).await.len(), 3);
}

#[tokio::test]
async fn a_loan_needs_a_member_and_a_book() {
    let library = TestLibrary::open().await;
    let (ann, book) = (library.member("ann").await, library.book_of("Emma", 1).await);
    let (no_member, no_book) = (MemberId::new("none").unwrap(), BookId::new("none").unwrap());
    assert!(matches!(library.lend(&no_member, &book.id, now()).await, Err(LibraryError::NoSuchMember)));
    assert!(matches!(library.lend(&ann.id, &no_book, now()).await, Err(LibraryError::NoSuchBook)));
    assert_eq!(library.book(&book.id).await.unwrap().free, 1, "a refused loan took a copy");
}

#[tokio::test]
async fn one_of_ten_concurrent_returns_of_a_book_succeeds() {
    let library = TestLibrary::open().await;
    let (ann, book) = (library.member("ann").await, library.book_of("Emma", 3).await);
    let loans = [0, 1].map(|_| library.lend(&ann.id, &book.id, now()));
    let loan = join_all(loans).await.remove(0).unwrap();
    let results = join_all((0..10).map(|_| library.give_back(&ann.id, &loan.id, days(1)))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().all(|result| matches!(result, Ok(()) | Err(LibraryError::AlreadyReturned))));
    assert_eq!(library.book(&book.id).await.unwrap().free, 2);
    let returned = library.loan(&ann.id, &loan.id).await.unwrap();
    assert_eq!(returned.returned_at, Some(days(1)));
    library.assert_whole(&returned).await;
    let other = library.member("bob").await;
    assert!(matches!(library.give_back(&other.id, &loan.id, days(1)).await, Err(LibraryError::NoSuchLoan)));
}

#[tokio::test]
async fn a_loan_is_overdue_after_its_due_date_until_its_return() {
    let library = TestLibrary::open().await;
    let (ann, book) = (library.member("ann").await, library.book_of("Emma", 1).await);
    let loan = library.lend(&ann.id, &book.id, now()).await.unwrap();
    library.assert_whole(&loan).await;
    let due = now().plus_seconds(LOAN_SECONDS);
    assert!(overdue(&library, now()).await.is_empty());
    assert!(overdue(&library, due).await.is_empty(), "a loan must not be overdue at its due date");
    let found = overdue(&library, due.plus_millis(1)).await;
    let expected =
        LoanSummary { id: loan.id.clone(), member_id: ann.id.clone(), book_id: book.id.clone(), due_at: due };
    assert_eq!(found, [expected]);
    library.give_back(&ann.id, &loan.id, days(30)).await.unwrap();
    assert!(overdue(&library, Instant::MAX).await.is_empty(), "a returned loan is still in the index");
    assert!(library.loans(&ann.id, 10, None, now()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_renewal_moves_the_loan_in_both_lists() {
    let library = TestLibrary::open().await;
    let (ann, book) = (library.member("ann").await, library.book_of("Emma", 2).await);
    let early = library.lend(&ann.id, &book.id, now()).await.unwrap();
    let late = library.lend(&ann.id, &book.id, days(10)).await.unwrap();
    let renewed = library.renew(&ann.id, &early.id, days(20)).await.unwrap();
    assert_eq!((renewed.due_at, renewed.meta.version), (days(48), 2));
    library.assert_whole(&renewed).await;
    assert_eq!(ids(&overdue(&library, days(40)).await), [&late.id]);
    assert_eq!(ids(&overdue(&library, days(50)).await), [&late.id, &early.id]);
    assert_eq!(ids(&library.loans(&ann.id, 10, None, now()).await.unwrap().items), [&late.id, &early.id]);
    library.give_back(&ann.id, &early.id, days(21)).await.unwrap();
    let refused = library.renew(&ann.id, &early.id, days(22)).await;
    assert!(matches!(refused, Err(LibraryError::AlreadyReturned)));
    let missing = library.renew(&ann.id, &LoanId::new("none").unwrap(), days(22)).await;
    assert!(matches!(missing, Err(LibraryError::NoSuchLoan)), "a renewal must not create a loan");
}

#[tokio::test]
async fn the_loans_of_many_members_are_one_list_by_due_date() {
    let library = TestLibrary::open().await;
    let (members, book) =
        ([library.member("ann").await, library.member("bob").await], library.book_of("Emma", 9).await);
    let mut expected = Vec::new();
    for day in [5, 1, 4, 2, 3, 0] {
        let member = &members[usize::try_from(day % 2).unwrap()];
        let loan = library.lend(&member.id, &book.id, days(day)).await.unwrap();
        expected.push((loan.due_at, loan.data.id));
    }
    expected.sort();
    let found = overdue(&library, days(100)).await;
    assert_eq!(ids(&found), expected.iter().map(|(_, id)| id).collect::<Vec<_>>());
    let of_bob = library.loans(&members[1].id, 10, None, now()).await.unwrap().items;
    assert_eq!(ids(&of_bob), [1, 3, 5].map(|day| &expected[day].1));
}
