//! Keys: decoding returns the original texts, keys sort like the texts, and different texts have
//! different keys.

use key_schema::encoding::{NewestFirst, Part, decode, encode, join, split};
use key_schema::id::{CustomerId, IdError, MAX_ID_BYTES};
use key_schema::instant::Instant;
use key_schema::key::{KeyError, MAX_PARTITION_KEY_BYTES, MAX_SORT_KEY_BYTES, PartitionKey, SortKey};
use key_schema::product::CategoryPath;
use key_schema::text::{Email, Username, fold};

pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    // The input contains two lists of texts.
    let (left, right) = text.split_once('|').unwrap_or((&text, ""));
    let lists = [left, right].map(|list| list.split('\n').collect::<Vec<&str>>());
    for one in lists.iter().flatten() {
        part(one);
        names(one);
    }
    whole(&lists[0], &lists[1]);
    numbers(input);
}

/// Checks a text as one part of a key, and as the encoded form of a part.
fn part(text: &str) {
    let encoded = encode(text);
    assert_eq!(decode(&encoded).as_deref(), Some(text));
    assert!(encoded.bytes().all(|byte| byte >= b'%'), "{encoded}");
    if let Some(read) = decode(text) {
        assert_eq!(encode(&read), text, "a part has two encodings");
    }
}

/// The keys sort like the lists, and are equal only if the lists are equal.
fn whole(left: &[&str], right: &[&str]) {
    let key = |parts: &[&str]| join("P", &parts.iter().map(|part| part as &dyn Part).collect::<Vec<_>>());
    let (ours, theirs) = (key(left), key(right));
    assert_eq!(ours.cmp(&theirs), left.cmp(right));
    let read = split(&ours).expect("a key is read back");
    assert_eq!(read[1..], *left);
    // A key that continues `ours` sorts between `ours#` and `ours$`. `#` is the delimiter, and `$`
    // is the character after `#`.
    let below = key(&[left, right].concat());
    assert!(format!("{ours}#") <= below && below < format!("{ours}$"));
    limits(&ours, PartitionKey::new(ours.as_str()).map(|_| ()), MAX_PARTITION_KEY_BYTES);
    limits(&ours, SortKey::new(ours.as_str()).map(|_| ()), MAX_SORT_KEY_BYTES);
}

fn limits(key: &str, made: Result<(), KeyError>, limit: usize) {
    assert_eq!(made.is_ok(), (1..=limit).contains(&key.len()), "{} bytes", key.len());
}

fn numbers(input: &[u8]) {
    let number = |at: usize| {
        input.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes).unwrap_or_default()
    };
    let (left, right) = (number(0), number(8));
    let text = |part: &dyn Part| join("", &[part]);
    assert_eq!(text(&left).cmp(&text(&right)), left.cmp(&right));
    let (left, right) = (left.cast_signed(), right.cast_signed());
    assert_eq!(text(&left).cmp(&text(&right)), left.cmp(&right));
    if let (Some(left), Some(right)) = (Instant::from_millis(left >> 16), Instant::from_millis(right >> 16)) {
        assert_eq!(text(&left).cmp(&text(&right)), left.cmp(&right));
        assert_eq!(text(&NewestFirst(left)).cmp(&text(&NewestFirst(right))), right.cmp(&left));
        assert_eq!(left.to_string().parse(), Ok(left));
        assert!(left.day().len() == 10 && left.plus_seconds(i64::MAX) >= left && left.plus_seconds(i64::MIN) <= left);
    }
}

/// Checks the rules for ids, and that a category and an instant have one written form each. Folding
/// a name twice must give the same name as folding it once.
fn names(text: &str) {
    let id = CustomerId::new(text);
    let sound = (1..=MAX_ID_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    let in_paths = !text.contains(['/', '?', '%', '\\']) && text != "." && text != "..";
    assert!(id.is_err() || sound && in_paths, "{text:?}");
    assert!(!text.is_empty() || id == Err(IdError::Empty));
    if let Ok(at) = text.parse::<Instant>() {
        let written = at.to_string();
        assert!(written.len() == 24 && written.parse() == Ok(at), "{text} is {written}");
    }
    if let Ok(path) = CategoryPath::from_segment(text) {
        assert_eq!(path.to_segment(), text, "a category has two URL segments");
        assert_eq!(path.lineage().last().as_ref(), Some(&path));
        assert!(
            path.lineage().all(|above| path.is_within(&above) && path.rebased(&above, &above).as_ref() == Some(&path))
        );
    }
    if let Ok(path) = CategoryPath::new(text.split('/').map(str::to_owned).collect()) {
        assert_eq!(CategoryPath::from_segment(&path.to_segment()).as_ref(), Ok(&path));
    }
    let folded = fold(text);
    assert_eq!(fold(&folded), folded, "{text:?} folded twice is another name");
    if let Ok(email) = text.parse::<Email>() {
        assert!(email.folded().parse::<Email>().is_ok_and(|again| again.folded() == email.folded()), "{text:?}");
    }
    if let Ok(name) = text.parse::<Username>() {
        assert!(PartitionKey::of("USERNAME", &[&name.folded()]).is_ok(), "{text:?} is too long for a key");
    }
}
