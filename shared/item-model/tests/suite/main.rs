//! Tests of ids, instants, shards and cursors, of the order of keys, and of the words of this crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod cursors;
mod encoding;
mod instants;
mod keys;
mod support;

use std::path::Path;

/// Words of particular applications. The model serves any application.
const WORDS: [&str; 13] = [
    "bodega",
    "cart",
    "catalogue",
    "commerce",
    "customer",
    "invoice",
    "money",
    "payment",
    "price list",
    "product",
    "shop",
    "stock",
    "wallet",
];

#[test]
fn the_model_has_no_word_of_an_application() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
        for word in WORDS {
            let line = text.lines().find(|line| line.contains(word));
            assert_eq!(line, None, "{} has the word {word}", path.display());
        }
        files += 1;
    }
    assert!(files > 10, "only {files} files");
}
