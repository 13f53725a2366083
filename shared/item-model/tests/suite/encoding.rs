//! Tests of key text: different values have different texts, and the texts sort like the values.

use item_model::encoding::{DELIMITER, NewestFirst, Part, decode, encode, encode_bytes, join, split};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{deterministic, instant, text};

/// Generates any bytes. Bytes in or near the escaped range are far more frequent than others.
fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![3 => 0x1e..=0x2au8, 1 => any::<u8>()], 0..=max)
}

fn encoded(part: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_bytes(part, &mut out);
    out
}

fn joined_bytes(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.iter().map(|part| encoded(part)).collect::<Vec<_>>().join(&(DELIMITER as u8))
}

fn joined<P: Part>(parts: &[P]) -> String {
    join("PREFIX", &parts.iter().map(|part| part as &dyn Part).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn byte_strings_sort_as_their_key_texts_and_different_strings_have_different_texts(a in bytes(12), b in bytes(12)) {
        prop_assert_eq!(encoded(&a).cmp(&encoded(&b)), a.cmp(&b));
    }

    #[test]
    fn lists_of_byte_strings_sort_part_by_part(a in vec(bytes(4), 1..4), b in vec(bytes(4), 1..4)) {
        prop_assert_eq!(joined_bytes(&a).cmp(&joined_bytes(&b)), a.cmp(&b));
    }

    #[test]
    fn a_part_that_is_a_prefix_of_another_sorts_first_whatever_part_follows(
        a in bytes(6), more in bytes(4), next in bytes(4),
    ) {
        let longer: Vec<u8> = a.iter().chain(&more).copied().collect();
        let (short, long) = ([a, next.clone()], [longer, next]);
        prop_assert_eq!(joined_bytes(&short).cmp(&joined_bytes(&long)), short.cmp(&long));
    }

    #[test]
    fn texts_sort_by_their_utf_8(a in text(12), b in text(12)) {
        prop_assert_eq!(encode(&a).cmp(&encode(&b)), a.as_bytes().cmp(b.as_bytes()));
        prop_assert_eq!(encode(&a).into_bytes(), encoded(a.as_bytes()));
    }

    #[test]
    fn lists_of_texts_sort_part_by_part(a in vec(text(4), 0..4), b in vec(text(4), 0..4)) {
        prop_assert_eq!(joined(&a).cmp(&joined(&b)), a.cmp(&b));
    }

    #[test]
    fn a_key_is_split_into_the_parts_that_were_joined(parts in vec(text(8), 0..5)) {
        let mut expected = vec!["PREFIX".to_owned()];
        expected.extend(parts.iter().cloned());
        prop_assert_eq!(split(&joined(&parts)), Some(expected));
    }

    #[test]
    fn decoding_inverts_encoding(part in text(16)) {
        prop_assert_eq!(decode(&encode(&part)), Some(part));
    }

    #[test]
    fn only_output_of_the_encoder_decodes(candidate in text(8)) {
        if let Some(part) = decode(&candidate) {
            prop_assert_eq!(encode(&part), candidate);
        }
    }

    #[test]
    fn unsigned_numbers_sort_as_their_key_text(a: u64, b: u64, small in 0u64..200) {
        prop_assert_eq!(joined(&[a]).cmp(&joined(&[b])), a.cmp(&b));
        prop_assert_eq!(joined(&[a]).cmp(&joined(&[small])), a.cmp(&small));
    }

    #[test]
    fn signed_numbers_sort_as_their_key_text(a: i64, b: i64, small in -100i64..100) {
        prop_assert_eq!(joined(&[a]).cmp(&joined(&[b])), a.cmp(&b));
        prop_assert_eq!(joined(&[a]).cmp(&joined(&[small])), a.cmp(&small));
    }

    #[test]
    fn instants_sort_as_their_key_text(a in instant(), b in instant()) {
        prop_assert_eq!(joined(&[a]).cmp(&joined(&[b])), a.cmp(&b));
        prop_assert_eq!(joined(&[a]).len(), joined(&[b]).len());
    }

    #[test]
    fn the_newest_first_encoding_sorts_instants_backward_and_equal_instants_by_the_next_part(
        a in instant(), b in instant(), x in text(4), y in text(4),
    ) {
        let key = |at, id: &String| join("QUESTION", &[&NewestFirst(at), id]);
        prop_assert_eq!(key(a, &x).cmp(&key(b, &y)), b.cmp(&a).then(x.cmp(&y)));
    }

    #[test]
    fn a_list_of_a_number_and_a_text_sorts_by_the_number_first(a: u64, b in 0u64..3, x in text(4), y in text(4)) {
        let key = |number: u64, id: &String| join("P", &[&number, id]);
        prop_assert_eq!(key(a, &x).cmp(&key(b, &y)), (a, &x).cmp(&(b, &y)));
    }
}

#[test]
fn numbers_have_twenty_digits_and_negative_numbers_sort_first() {
    assert_eq!(joined(&[0u64]), "PREFIX#00000000000000000000");
    assert_eq!(joined(&[u64::MAX]), "PREFIX#18446744073709551615");
    assert_eq!(joined(&[i64::MIN]), "PREFIX#00000000000000000000");
    assert_eq!(joined(&[-1i64]), "PREFIX#09223372036854775807");
    assert_eq!(joined(&[i64::MAX]), "PREFIX#18446744073709551615");
}

/// The encoder escapes exactly the bytes up to `%`. So no encoded part contains `#` or `$`, which
/// are the bounds of ranges.
#[test]
fn exactly_the_bytes_up_to_the_percent_sign_are_escaped() {
    for byte in 0..=u8::MAX {
        let expected = if byte <= 0x25 { format!("%{byte:02X}").into_bytes() } else { vec![byte] };
        assert_eq!(encoded(&[byte]), expected, "{byte:#04x}");
    }
}

/// Tests all pairs of ASCII characters after a `%`. A lenient parser would accept signs, lower
/// case, and escapes of characters that need none.
#[test]
fn only_the_encoders_spelling_of_an_escape_decodes() {
    for high in 0..=0x7Fu8 {
        for low in 0..=0x7Fu8 {
            let escape = format!("%{}{}", char::from(high), char::from(low));
            let expected =
                (0..=0x25u8).find(|byte| format!("%{byte:02X}") == escape).map(|byte| char::from(byte).to_string());
            assert_eq!(decode(&escape), expected, "{escape:?}");
        }
    }
    for cut in ["%", "%2", "a%", "a%0", "%€", "%2€"] {
        assert_eq!(decode(cut), None, "{cut}");
    }
}
