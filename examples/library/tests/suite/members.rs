use futures::future::join_all;
use library::LibraryError;
use library::member::{Email, EmailClaim};

use crate::{TestLibrary, email, now};

#[tokio::test]
async fn a_read_returns_the_member_as_registered() {
    let library = TestLibrary::open().await;
    let ann = library.member("ann").await;
    assert_eq!(library.library.member(&ann.id).await.unwrap(), ann);
    library.assert_whole(&ann).await;
}

#[tokio::test]
async fn another_spelling_of_a_taken_address_is_refused_and_the_error_names_the_spelling() {
    let library = TestLibrary::open().await;
    library.member("ann").await;
    let spelling = Email::new("Ann@Example.com").unwrap();
    let refused = library.register(spelling.clone(), "another Ann", now()).await;
    assert!(matches!(refused, Err(LibraryError::EmailTaken(named)) if named == spelling));
}

#[tokio::test]
async fn one_of_twenty_concurrent_registrations_with_one_address_succeeds() {
    let library = TestLibrary::open().await;
    let results = join_all((0..20).map(|_| library.register(email("ann"), "Ann", now()))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(LibraryError::EmailTaken(_)))));
}

#[tokio::test]
async fn a_change_of_address_claims_the_new_address_and_frees_the_old_address() {
    let library = TestLibrary::open().await;
    let ann = library.member("ann").await;
    library.change_email(&ann, email("lee"), now().plus_seconds(60)).await.unwrap();
    let changed = library.library.member(&ann.id).await.unwrap();
    assert_eq!((changed.email.as_str(), changed.meta.version), ("lee@example.com", 2));
    library.assert_whole(&changed).await;
    let refused = library.register(email("lee"), "Lee", now()).await;
    assert!(matches!(refused, Err(LibraryError::EmailTaken(_))));
    library.member("ann").await;
}

#[tokio::test]
async fn a_change_to_a_taken_address_changes_nothing() {
    let library = TestLibrary::open().await;
    let (ann, _) = (library.member("ann").await, library.member("bob").await);
    let refused = library.change_email(&ann, email("bob"), now()).await;
    assert!(matches!(refused, Err(LibraryError::EmailTaken(named)) if named == email("bob")));
    assert_eq!(library.library.member(&ann.id).await.unwrap(), ann);
    let claim = EmailClaim { email: email("ann").folded(), member_id: ann.id.clone() };
    assert!(library.raw(&claim).await.is_some());
}

#[tokio::test]
async fn a_change_to_another_spelling_of_the_address_keeps_the_claim() {
    let library = TestLibrary::open().await;
    let ann = library.member("ann").await;
    library.change_email(&ann, Email::new("ANN@example.com").unwrap(), now()).await.unwrap();
    assert!(matches!(library.register(email("ann"), "Ann", now()).await, Err(LibraryError::EmailTaken(_))));
}

#[tokio::test]
async fn a_change_with_a_stale_version_is_refused() {
    let library = TestLibrary::open().await;
    let ann = library.member("ann").await;
    let renamed = library.rename(&ann, "Ann Lee", now()).await.unwrap();
    assert_eq!((renamed.name.as_str(), renamed.meta.version), ("Ann Lee", 2));
    assert!(matches!(library.rename(&ann, "Ann Poe", now()).await, Err(LibraryError::Stale)));
    assert!(matches!(library.change_email(&ann, email("poe"), now()).await, Err(LibraryError::Stale)));
    assert_eq!(library.library.member(&ann.id).await.unwrap(), renamed);
    library.register(email("poe"), "Poe", now()).await.unwrap();
}

#[tokio::test]
async fn one_of_ten_concurrent_changes_of_address_succeeds_and_claims_only_its_address() {
    let library = TestLibrary::open().await;
    let ann = library.member("ann").await;
    let new: Vec<String> = (0..10).map(|number| format!("ann{number}")).collect();
    let results = join_all(new.iter().map(|name| library.change_email(&ann, email(name), now()))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let free = join_all(new.iter().map(|name| library.register(email(name), name, now()))).await;
    assert_eq!(free.iter().filter(|result| result.is_ok()).count(), 9);
}
