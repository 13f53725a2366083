//! Tests of category paths and their form in a URL.

use key_schema::id::{IdError, check};
use key_schema::product::{CategoryError, CategoryPath, MAX_CATEGORY_BYTES, MAX_CATEGORY_DEPTH};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{deterministic, text};

pub fn path(names: &[&str]) -> CategoryPath {
    CategoryPath::new(names.iter().map(ToString::to_string).collect()).unwrap()
}

/// Generates texts from pieces of a category's URL: separators, escapes and any single character.
fn segment() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("_".to_owned()),
        Just("~".to_owned()),
        Just("-".to_owned()),
        "[0-9A-Fa-f]{2}",
        "_[0-9A-F]{2}",
        "_C3_[89AB][0-9A-F]",
        text(1)
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn a_category_path_is_read_back_from_its_url(names in vec(text(10), 1..4)) {
        if let Ok(path) = CategoryPath::new(names) {
            let segment = path.to_segment();
            prop_assert!(segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte)));
            prop_assert_eq!(CategoryPath::from_segment(&segment), Ok(path));
        }
    }

    #[test]
    fn a_category_has_only_one_url(segment in segment()) {
        if let Ok(path) = CategoryPath::from_segment(&segment) {
            prop_assert_eq!(path.to_segment(), segment);
        }
    }

    #[test]
    fn a_path_obeys_its_limits(names in vec(prop_oneof![text(30), "[A-Z]{120}"], 0..10)) {
        let each = names.iter().all(|name| check(name).is_ok());
        let encoded: usize = names.iter().map(|name| key_schema::encoding::encode(name).len()).sum();
        let key = encoded + names.len().saturating_sub(1);
        let legal = (1..=MAX_CATEGORY_DEPTH).contains(&names.len()) && each && key <= MAX_CATEGORY_BYTES;
        prop_assert_eq!(CategoryPath::new(names).is_ok(), legal);
    }
}

#[test]
fn the_url_of_a_category_has_the_documented_form() {
    let ice = path(&["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"]);
    assert_eq!(ice.to_segment(), "GROCERY~FRZN_20ICE~ICE_20-_20CRUSHED_2FCUBED");
    assert_eq!(path(&["Käse", "a_b~c"]).to_segment(), "K_C3_A4se~a_5Fb_7Ec");
}

#[test]
fn other_spellings_of_the_url_of_a_category_are_refused() {
    for other in ["_41", "_2f", "_4", "_", "A_", "_+1", "_C3", "_FF", "A B", "A/B", "A.B", "Ä", "A%20B"] {
        assert_eq!(CategoryPath::from_segment(other), Err(CategoryError::Segment), "{other}");
    }
    for empty in ["", "~", "A~", "~A", "A~~B"] {
        assert_eq!(CategoryPath::from_segment(empty), Err(CategoryError::Name(IdError::Empty)), "{empty}");
    }
    assert_eq!(CategoryPath::from_segment("A_00"), Err(CategoryError::Name(IdError::ControlCharacter)));
    assert_eq!(CategoryPath::from_segment("A~A~A~A~A~A~A~A~A"), Err(CategoryError::Depth));
}

#[test]
fn a_lineage_runs_from_the_top_to_the_category_itself() {
    let path3 = path(&["A", "B", "C"]);
    assert_eq!(path3.lineage().collect::<Vec<_>>(), [path(&["A"]), path(&["A", "B"]), path3.clone()]);
    assert_eq!(path3.parent(), Some(path(&["A", "B"])));
    assert_eq!(path(&["A"]).parent(), None);
    assert_eq!((path3.name(), path3.to_string()), ("C", "A / B / C".to_owned()));
}
