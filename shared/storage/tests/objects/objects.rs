//! Tests of writing once, reading, listing and deleting.

use std::time::{Duration, SystemTime};

use aws::s3::object;
use aws::{Call, Method};
use futures::future::join_all;
use storage::objects::{Class, MAX_BYTES, ObjectError, ObjectPage, ObjectStore, Put};

use super::{BUCKET, bucket, start, store};

/// Returns names that are difficult for paths, addresses, XML and file systems. All are valid in
/// S3.
fn hostile_names() -> Vec<String> {
    let fixed = [
        "plain",
        "a/b/c.json",
        "a//b",
        "/a",
        "a/",
        "//",
        "a/../b",
        "a/./b",
        ".hidden",
        "a/..b",
        "%2e%2e",
        "%2F",
        "%25",
        "a%",
        "a+b",
        "a b",
        " a ",
        "a#b",
        "a?b=c&d",
        "a&amp;b",
        "<a>\"'</a>",
        "]]>",
        "ÄÖÜ",
        "日本語",
        "🛒",
        "e\u{301}",
        "\u{e9}",
        "\u{7fff}",
        "~",
        "a:b",
        "C:\\x",
        "a=b",
        "@",
        "CON",
        "A",
        "a",
        "*",
        "a;b",
        "a,b",
        "!$'()",
    ];
    let long = ["x".repeat(1024), "é".repeat(512), "%".repeat(1024), "/".repeat(1024), "a/".repeat(512)];
    fixed.into_iter().map(str::to_owned).chain(long).collect()
}

async fn all(store: &ObjectStore, prefix: &str, limit: u16) -> Vec<String> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let ObjectPage { items, next } = store.list(prefix, after.as_deref(), limit).await.unwrap();
        assert!(items.len() <= usize::from(limit));
        names.extend(items.into_iter().map(|item| item.name));
        match next {
            Some(next) => after = Some(next),
            None => return names,
        }
    }
}

#[tokio::test]
async fn the_first_writer_of_a_name_wins() {
    let (_server, store) = start().await;
    assert_eq!(store.put_new("a", b"{1}".to_vec(), Class::Standard).await.unwrap(), Put::Created);
    assert_eq!(store.put_new("a", b"{2}".to_vec(), Class::Cold).await.unwrap(), Put::AlreadyThere);
    assert_eq!(store.get("a").await.unwrap().unwrap(), b"{1}");
}

#[tokio::test]
async fn exactly_one_of_many_concurrent_writers_of_a_name_creates_it() {
    let (server, _) = start().await;
    // Each store has its own connections.
    let stores: Vec<ObjectStore> = (0..24).map(|_| store(&server)).collect();
    let puts =
        stores.iter().enumerate().map(|(n, store)| store.put_new("a", vec![u8::try_from(n).unwrap()], Class::Standard));
    let puts = join_all(puts).await;
    let created: Vec<usize> = (0..24).filter(|n| *puts[*n].as_ref().unwrap() == Put::Created).collect();
    assert_eq!(created.len(), 1, "{created:?}");
    assert_eq!(stores[0].get("a").await.unwrap().unwrap(), [u8::try_from(created[0]).unwrap()]);
}

#[tokio::test]
async fn a_missing_object_is_distinguished_from_a_missing_bucket() {
    let (server, store) = start().await;
    assert_eq!(store.get("a").await.unwrap(), None);
    let elsewhere = ObjectStore::new(bucket(server.url(), "nowhere"));
    for error in [
        elsewhere.get("a").await.unwrap_err(),
        elsewhere.put_new("a", vec![], Class::Standard).await.unwrap_err(),
        elsewhere.list("", None, 10).await.unwrap_err(),
        elsewhere.delete("a").await.unwrap_err(),
    ] {
        assert!(matches!(&error, ObjectError::Refused(code) if code == "NoSuchBucket"), "{error:?}");
    }
}

#[tokio::test]
async fn a_deleted_object_is_gone_and_its_name_is_free_again() {
    let (_server, store) = start().await;
    store.put_new("a", b"1".to_vec(), Class::Standard).await.unwrap();
    store.delete("a").await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), None);
    store.delete("a").await.unwrap();
    assert_eq!(store.put_new("a", b"2".to_vec(), Class::Standard).await.unwrap(), Put::Created);
}

#[tokio::test]
async fn objects_with_unusual_names_are_written_read_listed_and_deleted() {
    let (_server, store) = start().await;
    for name in hostile_names() {
        let put = store.put_new(&name, name.clone().into_bytes(), Class::Standard).await;
        assert!(matches!(put, Ok(Put::Created)), "{name}: {put:?}");
    }
    for name in hostile_names() {
        assert_eq!(store.get(&name).await.unwrap().as_deref(), Some(name.as_bytes()), "{name}");
    }
    let mut names = hostile_names();
    names.sort();
    for limit in [1000, 7] {
        assert_eq!(all(&store, "", limit).await, names);
    }
    for name in hostile_names() {
        assert!(all(&store, &name, 3).await.contains(&name), "{name}");
        store.delete(&name).await.unwrap();
        assert_eq!(store.get(&name).await.unwrap(), None, "{name}");
    }
    assert_eq!(all(&store, "", 10).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_invalid_name_is_refused_and_no_object_is_written() {
    let (_server, store) = start().await;
    for name in ["", &"x".repeat(1025), "a\nb", "a\0", "a\u{85}"] {
        let error = store.put_new(name, vec![], Class::Standard).await.unwrap_err();
        assert!(matches!(error, ObjectError::Name(_)), "{name:?}: {error:?}");
        assert!(matches!(store.get(name).await, Err(ObjectError::Name(_))), "{name:?}");
        assert!(matches!(store.delete(name).await, Err(ObjectError::Name(_))), "{name:?}");
    }
    // S3 itself refuses these names.
    for name in ["../x", "..", "a/../../x", "a//../../x", "./../x"] {
        let error = store.put_new(name, vec![], Class::Standard).await.unwrap_err();
        assert!(matches!(&error, ObjectError::Refused(code) if code == "InvalidURI"), "{name:?}: {error:?}");
    }
    assert_eq!(all(&store, "", 10).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_list_is_in_byte_order_and_can_have_a_prefix_and_start_after_a_name() {
    let (server, store) = start().await;
    for (name, size) in [("b/2", 2), ("b/10", 1), ("b", 0), ("b/B", 3), ("c", 9), ("a", 9), ("b/é", 4)] {
        store.put_new(name, vec![b'x'; size], Class::Cold).await.unwrap();
    }
    let page = store.list("b/", None, 1000).await.unwrap();
    let shown: Vec<(&str, u64)> = page.items.iter().map(|item| (item.name.as_str(), item.size)).collect();
    assert_eq!((shown, page.next), (vec![("b/10", 1), ("b/2", 2), ("b/B", 3), ("b/é", 4)], None));
    let age = SystemTime::now().duration_since(page.items[0].modified).unwrap();
    assert!(age < Duration::from_secs(600), "{age:?}");

    let page = store.list("b/", Some("b/2"), 1).await.unwrap();
    assert_eq!((page.items[0].name.as_str(), page.next.as_deref()), ("b/B", Some("b/B")));
    let page = store.list("b/", Some("b/zzz"), 10).await.unwrap();
    assert_eq!(page.items[0].name, "b/é");
    // `b` is both the prefix and an object's name. The name at which a list starts may also sort
    // before or after all names with the prefix.
    assert_eq!(store.list("b", None, 10).await.unwrap().items.len(), 5);
    assert_eq!(store.list("b", Some("b"), 10).await.unwrap().items.len(), 4);
    assert_eq!(store.list("b/", Some("a"), 10).await.unwrap().items.len(), 4);
    assert_eq!(store.list("b/", Some("c"), 10).await.unwrap(), ObjectPage { items: vec![], next: None });
    assert_eq!(store.list("", None, 0).await.unwrap().items.len(), 1, "a page is never empty while there are objects");
    assert!(server.list(BUCKET, None, 10).unwrap().items.iter().all(|item| item.class == "GLACIER_IR"));
}

#[tokio::test]
async fn a_cold_object_has_its_storage_class_and_is_readable_at_once() {
    let (server, store) = start().await;
    store.put_new("cold", b"{}".to_vec(), Class::Cold).await.unwrap();
    store.put_new("warm", b"{}".to_vec(), Class::Standard).await.unwrap();
    assert_eq!(store.get("cold").await.unwrap().unwrap(), b"{}");
    for (name, class) in [("cold", Some("GLACIER_IR")), ("warm", None)] {
        let head = bucket(server.url(), BUCKET).call(&Call::new(Method::HEAD, &object(name))).await.unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")));
        assert_eq!((head.header("content-length"), head.header("x-amz-storage-class")), (Some("2"), class));
    }
}

#[tokio::test]
async fn an_empty_object_and_one_of_the_maximum_size_are_read_and_a_larger_one_is_not() {
    let (server, store) = start().await;
    store.put_new("empty", vec![], Class::Standard).await.unwrap();
    assert_eq!(store.get("empty").await.unwrap().unwrap(), b"");
    let body: Vec<u8> = (0..MAX_BYTES).map(|n| u8::try_from(n % 251).unwrap()).collect();
    server.put(BUCKET, "largest", body.clone().into()).unwrap();
    assert!(store.get("largest").await.unwrap().unwrap() == body);
    server.put(BUCKET, "larger", vec![b'x'; MAX_BYTES + 1].into()).unwrap();
    assert!(matches!(store.get("larger").await, Err(ObjectError::TooLarge)));
}

#[tokio::test]
async fn a_body_of_several_megabytes_is_written_completely() {
    let (server, store) = start().await;
    let body: Vec<u8> = (0..2 << 20).map(|n| u8::try_from(n % 251).unwrap()).collect();
    assert_eq!(store.put_new("large", body.clone(), Class::Standard).await.unwrap(), Put::Created);
    assert!(server.get(BUCKET, "large").unwrap().unwrap() == body);
}
