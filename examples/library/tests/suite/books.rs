use std::collections::BTreeSet;

use library::LibraryError;
use library::book::{BOOK_SHARDS, BookSummary};

use crate::{TestLibrary, now};

/// Reads the whole list, page by page. `between` runs after each page except the last.
async fn pages(library: &TestLibrary, limit: usize, mut between: impl AsyncFnMut(&BookSummary)) -> Vec<BookSummary> {
    let (mut books, mut cursor) = (Vec::new(), None);
    loop {
        let page = library.books(limit, cursor.as_deref(), now()).await.unwrap();
        assert!(page.items.len() <= limit);
        books.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return books;
        }
        between(books.last().unwrap()).await;
    }
}

fn titles(books: &[BookSummary]) -> Vec<&str> {
    books.iter().map(|book| book.title.as_str()).collect()
}

#[tokio::test]
async fn pages_of_any_size_show_each_book_once_in_the_order_of_titles() {
    let library = TestLibrary::open().await;
    // The books are not added in the order of their titles.
    for number in 0..30 {
        library.book_of(&format!("Book {:02}", number * 7 % 30), 1).await;
    }
    library.book_of("BOOK 03", 1).await;
    let mut expected: Vec<String> = (0..30).map(|number| format!("book {number:02}")).collect();
    expected.insert(3, "book 03".to_owned());
    for limit in [1, 7, 31, 100] {
        let books = pages(&library, limit, async |_| {}).await;
        assert_eq!(titles(&books).into_iter().map(str::to_lowercase).collect::<Vec<_>>(), expected, "pages of {limit}");
        assert_eq!(books.iter().map(|book| &book.id).collect::<BTreeSet<_>>().len(), 31);
    }
    let shards: BTreeSet<u32> =
        pages(&library, 100, async |_| {}).await.iter().map(|book| BOOK_SHARDS.of(book.id.as_str())).collect();
    assert!(shards.len() > 1, "all books are in one partition");
}

#[tokio::test]
async fn a_book_added_between_pages_neither_repeats_nor_hides_other_books() {
    let library = TestLibrary::open().await;
    for number in 0..20 {
        library.book_of(&format!("Book {number:02}"), 1).await;
    }
    let books = pages(&library, 3, async |last| {
        library.book_of(&format!("A before {}", last.title), 1).await;
        library.book_of(&format!("{} and after", last.title), 1).await;
    })
    .await;
    let titles = titles(&books);
    assert!(titles.is_sorted(), "{titles:?}");
    let (old, new): (Vec<&str>, Vec<&str>) = titles.into_iter().partition(|title| !title.ends_with("after"));
    assert_eq!(old, (0..20).map(|number| format!("Book {number:02}")).collect::<Vec<_>>());
    assert!(new.len() > 5 && new.len() == new.iter().collect::<BTreeSet<_>>().len(), "{new:?}");
}

#[tokio::test]
async fn a_cursor_is_valid_only_for_its_list() {
    let library = TestLibrary::open().await;
    let [ann, bob] = [library.member("ann").await, library.member("bob").await];
    for title in ["Emma", "The Waves"] {
        let book = library.book_of(title, 1).await;
        library.lend(&ann.id, &book.id, now()).await.unwrap();
    }
    let books = library.books(1, None, now()).await.unwrap().next.unwrap();
    let loans = library.loans(&ann.id, 1, None, now()).await.unwrap().next.unwrap();
    assert!(library.books(1, Some(&books), now()).await.is_ok());
    assert!(library.loans(&ann.id, 1, Some(&loans), now()).await.is_ok());
    assert!(matches!(library.books(1, Some(&loans), now()).await, Err(LibraryError::Cursor(_))));
    assert!(matches!(library.overdue(1, Some(&books), now()).await, Err(LibraryError::Cursor(_))));
    assert!(matches!(library.loans(&bob.id, 1, Some(&loans), now()).await, Err(LibraryError::Cursor(_))));
    let days_later = now().plus_seconds(3 * 24 * 60 * 60);
    assert!(matches!(library.books(1, Some(&books), days_later).await, Err(LibraryError::Cursor(_))));
}
