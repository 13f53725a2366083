use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::try_join_all;
use item_model::item::{Entity as _, Stored};
use library::loan::{LOAN_SECONDS, Loan};
use library::member::Member;
use library::migration::{migrate, scan_segment};

use crate::{TestLibrary, now};

/// Returns whether the list of overdue loans has the loan, long after its due date.
async fn is_listed(library: &TestLibrary, loan: &Loan) -> bool {
    let overdue = library.overdue(1_000, None, now().plus_seconds(9 * LOAN_SECONDS)).await.unwrap();
    overdue.items.iter().any(|listed| listed.id == loan.id)
}

/// Lends a book, and gives the loan the form of the first schema.
async fn old_loan(library: &TestLibrary, member: &Member) -> Stored<Loan> {
    let book = library.book_of("Emma", 1).await;
    let loan = library.lend(&member.id, &book.id, now()).await.unwrap();
    let key = loan.key().unwrap();
    let update = library.client.update_item().table_name(library.table().name());
    let update = update.key("PK", AttributeValue::S(key.pk.into_string()));
    let update = update.key("SK", AttributeValue::S(key.sk.into_string()));
    update.update_expression("REMOVE GSI2PK, GSI2SK").send().await.unwrap();
    loan
}

/// Scans the table in four parallel segments.
async fn scan(library: &TestLibrary) -> u64 {
    let segments = (0..4).map(|segment| scan_segment(&library.client, library.table(), segment, 4));
    try_join_all(segments).await.unwrap().iter().sum()
}

#[tokio::test]
async fn a_migration_by_the_stream_and_one_by_a_scan_give_the_same_rows() {
    let library = TestLibrary::open().await;
    let ann = library.member("ann").await;
    let loans = [old_loan(&library, &ann).await, old_loan(&library, &ann).await];
    for loan in &loans {
        assert_eq!(&library.loan(&ann.id, &loan.id).await.unwrap(), loan, "the present schema reads an old loan");
        assert!(!is_listed(&library, loan).await);
    }
    assert_eq!(library.loans(&ann.id, 10, None, now()).await.unwrap().items.len(), 2);
    let image = library.raw(&loans[0].data).await.unwrap();
    assert!(migrate(library.table(), &image).await.unwrap(), "the stream's record of the first loan");
    assert_eq!(scan(&library).await, 1, "the scan writes only the other loan");
    for mut loan in loans {
        assert!(is_listed(&library, &loan).await);
        loan.meta.rev += 1;
        library.assert_whole(&loan).await;
    }
    assert!(!migrate(library.table(), &image).await.unwrap(), "the record arrives again");
    assert_eq!(scan(&library).await, 0, "a second scan writes nothing");
}

#[tokio::test]
async fn a_write_that_touches_an_old_loan_migrates_it_and_wins_over_a_late_record() {
    let library = TestLibrary::open().await;
    let ann = library.member("ann").await;
    let [renewed, returned] = [old_loan(&library, &ann).await, old_loan(&library, &ann).await];
    let images = [library.raw(&renewed.data).await.unwrap(), library.raw(&returned.data).await.unwrap()];
    let renewed = library.renew(&ann.id, &renewed.id, now().plus_seconds(60)).await.unwrap();
    assert!(is_listed(&library, &renewed).await, "a renewal adds the loan to the list");
    library.give_back(&ann.id, &returned.id, now()).await.unwrap();
    let after = [library.raw(&renewed.data).await.unwrap(), library.raw(&returned.data).await.unwrap()];
    for image in &images {
        assert!(!migrate(library.table(), image).await.unwrap(), "the image is older than the write");
    }
    assert_eq!(scan(&library).await, 0);
    for (loan, after) in [(&renewed.data, &after[0]), (&returned.data, &after[1])] {
        assert_eq!(library.raw(loan).await.as_ref(), Some(after), "nothing was written");
    }
    library.assert_whole(&renewed).await;
    assert!(!is_listed(&library, &returned).await);
}
