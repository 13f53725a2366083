//! Tests of money, names, the statuses of an order, and the size of values.

use std::collections::{BTreeSet, HashMap};

use key_schema::address::{Country, PostalCodeError, UnknownCountry};
use key_schema::entity::AnyEntity;
use key_schema::item::{DecodeError, EncodeError, FromItem as _, Item, MAX_COUNT, MAX_ITEM_BYTES, Stored, size};
use key_schema::money::{Currency, Money, MoneyError};
use key_schema::order::{OrderStatus, UnknownStatus, total};
use key_schema::product::CategoryPath;
use key_schema::region::RegionSales;
use key_schema::text::{Email, NameError, Username, fold, visible_name};
use proptest::prelude::*;
use serde_dynamo::AttributeValue;

use crate::support::{deterministic, text};
use crate::world::World;

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn sums_and_products_are_exact_or_refused(a: i64, b: i64, quantity: u64) {
        let usd = |amount| Money::new(amount, Currency::USD);
        let exact = |wide: i128| i64::try_from(wide).map(usd).map_err(|_| MoneyError::Overflow);
        prop_assert_eq!(usd(a).plus(usd(b)), exact(i128::from(a) + i128::from(b)));
        if i64::try_from(quantity).is_ok() {
            prop_assert_eq!(usd(a).times(quantity), exact(i128::from(a) * i128::from(quantity)));
        }
    }

    #[test]
    fn a_folded_text_does_not_change_when_it_is_folded_again(text in text(12)) {
        let folded = fold(&text);
        prop_assert_eq!(fold(&folded), folded);
    }

    #[test]
    fn upper_and_lower_case_of_a_text_fold_to_the_same_text(text in text(12)) {
        prop_assert_eq!(fold(&text.to_ascii_uppercase()), fold(&text.to_ascii_lowercase()));
    }

    #[test]
    fn the_spelling_of_a_name_is_stable(text in text(12)) {
        if let Ok(name) = visible_name(&text) {
            prop_assert_eq!(visible_name(&name), Ok(name));
        }
    }

    #[test]
    fn an_accepted_email_address_has_one_at_sign_and_no_white_space(
        candidate in text(12), tail in "(@[a-z.]{0,4})?",
    ) {
        let candidate = candidate + &tail;
        if let Ok(email) = candidate.parse::<Email>() {
            for text in [email.as_str(), &email.folded()] {
                prop_assert_eq!(text.matches('@').count(), 1);
                prop_assert!(!text.chars().any(|c| c.is_whitespace() || c.is_control()) && text.len() <= 254);
            }
        }
    }
}

#[test]
fn money_of_two_currencies_is_never_added_and_a_sum_that_does_not_fit_is_refused() {
    let (usd, eur) = (|amount| Money::new(amount, Currency::USD), "EUR".parse().unwrap());
    assert_eq!(usd(1).plus(Money::new(1, eur)), Err(MoneyError::Mixed));
    assert_eq!(usd(i64::MAX).plus(usd(1)), Err(MoneyError::Overflow));
    assert_eq!(usd(i64::MIN).plus(usd(-1)), Err(MoneyError::Overflow));
    assert_eq!(usd(i64::MAX).times(2), Err(MoneyError::Overflow));
    assert_eq!(usd(0).times(u64::MAX), Err(MoneyError::Overflow), "a quantity above 63 bits is refused");
    assert_eq!(total(&[]), Ok(None));
    assert_eq!(total(&[usd(129), usd(-29)]), Ok(Some(usd(100))));
    assert_eq!(total(&[usd(1), Money::new(1, eur)]), Err(MoneyError::Mixed));
    assert_eq!(total(&[usd(i64::MAX), usd(i64::MAX)]), Err(MoneyError::Overflow));
}

#[test]
fn a_total_beyond_64_bits_is_read_as_the_limit_and_a_fraction_is_refused() {
    let total = |amount: &str| {
        let mut item = World::plain().region_sales().to_item().unwrap();
        item.inner_mut().insert("amount".into(), AttributeValue::N(amount.into()));
        Stored::<RegionSales>::from_item(item).map(|total| total.amount).ok()
    };
    for (stored, read) in [
        ("-3", Some(-3)),
        ("9007199254740993", Some(9_007_199_254_740_993)),
        ("9223372036854775807", Some(i64::MAX)),
        ("9223372036854775808", Some(i64::MAX)),
        ("900000000000000000000000", Some(i64::MAX)),
        ("-900000000000000000000000", Some(i64::MIN)),
        ("1.5", None),
    ] {
        assert_eq!(total(stored), read, "{stored}");
    }
}

#[test]
fn json_other_than_an_integer_amount_and_a_currency_is_not_money() {
    let money = Money::new(129, Currency::USD);
    assert_eq!(serde_json::to_string(&money).unwrap(), r#"{"amount":129,"currency":"USD"}"#);
    for wrong in [
        r#"{"amount":1.5,"currency":"USD"}"#,
        r#"{"amount":"1","currency":"USD"}"#,
        r#"{"amount":1,"currency":"usd"}"#,
        r#"{"amount":1,"currency":"EURO"}"#,
        r#"{"amount":1,"currency":"ÄÄ"}"#,
        r#"{"amount":1}"#,
        r#"{"amount":1,"currency":"USD","x":1}"#,
        r#"{"amount":9223372036854775808,"currency":"USD"}"#,
    ] {
        assert!(serde_json::from_str::<Money>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn spellings_of_the_same_name_fold_to_the_same_text() {
    for (one, other) in [
        ("Straße", "STRASSE"),
        ("ｆｕｌｌ－ｗｉｄｔｈ", "full-width"),
        ("ﬁne", "FINE"),
        ("é", "e\u{301}"),
        ("\u{212B}ngström", "ÅNGSTRÖM"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ᾳ", "ΑΙ"),
        ("ſ", "S"),
        ("K", "\u{212A}"),
        // Invisible characters: zero width space and joiner, soft hyphen, variation selectors, a
        // mark of direction, a byte order mark, a Hangul filler, and a tag.
        ("a\u{200B}nn", "ann"),
        ("a\u{200D}nn", "ANN"),
        ("an\u{AD}n", "ann"),
        ("ann\u{FE0F}", "ann"),
        ("ann\u{E0100}", "ann"),
        ("\u{202E}ann", "ann"),
        ("\u{FEFF}ann", "ann"),
        ("ann\u{3164}\u{FFA0}", "ann"),
        ("ann\u{E0041}", "ann"),
        ("e\u{200D}\u{301}", "é"),
    ] {
        assert_eq!(fold(one), fold(other), "{one} and {other}");
    }
    for (one, other) in [("a", "b"), ("a.b", "ab"), ("é", "e"), ("ı", "i"), ("0", "O")] {
        assert_ne!(fold(one), fold(other), "{one} and {other}");
    }
}

#[test]
fn a_name_loses_its_invisible_characters() {
    let name: Username = "A\u{200D}nn\u{AD}".parse().unwrap();
    assert_eq!((name.as_str(), name.folded()), ("Ann", "ann".to_owned()));
    assert_eq!("Ann".parse::<Username>().unwrap(), name);
    assert_eq!("a\u{200B}nn@example.com".parse::<Email>().unwrap().as_str(), "ann@example.com");
    assert_eq!("\u{200B}".parse::<Username>(), Err(NameError::Blank));
    assert_eq!("\u{200B}@example.com".parse::<Email>(), Err(NameError::Email));
}

/// The name of a brand, a region, a category or an option has the same spelling wherever it comes
/// from, so that texts that look alike are one.
#[test]
fn names_that_look_alike_are_equal() {
    for spelling in ["Crème brûlée", " Crème brûlée ", "Cre\u{300}me  brûlée", "\u{FEFF}Crème\u{A0}brûlée "]
    {
        assert_eq!(visible_name(spelling).as_deref(), Ok("Crème brûlée"), "{}", spelling.escape_unicode());
        assert_eq!(spelling.parse::<Username>().unwrap().as_str(), "Crème brûlée");
    }
    for blank in ["", " ", "\u{3000}", "\u{200B}", "\u{2800}", "\u{3164}\u{115F}"] {
        assert_eq!(visible_name(blank), Err(NameError::Blank), "{}", blank.escape_unicode());
    }
    assert_eq!(visible_name("a\u{7}"), Err(NameError::Unprintable));
    for other in [" FRUIT", "FRUIT ", "A\u{A0}B", "A\u{200B}"] {
        assert!(CategoryPath::new(vec![other.to_owned()]).is_err(), "{}", other.escape_unicode());
    }
}

#[test]
fn a_name_with_an_unprintable_character_is_refused() {
    for c in
        ['\u{2028}', '\u{2029}', '\u{FFF9}', '\u{FFFB}', '\u{E000}', '\u{10FFFD}', '\u{FDD0}', '\u{FFFE}', '\u{1FFFF}']
    {
        let name = format!("vic{c}");
        assert_eq!(name.parse::<Username>(), Err(NameError::Unprintable), "{}", c.escape_unicode());
        assert_eq!(format!("{name}@example.com").parse::<Email>(), Err(NameError::Email), "{}", c.escape_unicode());
    }
    for name in ["vic\u{FFFD}", "vic\u{FFFC}", "vic\u{1FFFD}", "Ω🜚", "製 品"] {
        assert!(name.parse::<Username>().is_ok(), "{name}");
    }
}

/// Folding adds no invisible character, so one pass removes them all. The claim of a name without
/// invisible characters is the folded name.
#[test]
fn no_visible_character_folds_to_an_invisible_one() {
    for letter in (0..0x11_0000).filter_map(char::from_u32).map(String::from) {
        let folded = fold(&letter);
        assert_eq!(fold(&folded), folded, "{}", letter.escape_unicode());
        if let Ok(name) = letter.parse::<Username>() {
            assert_eq!(name.folded(), folded, "{}", letter.escape_unicode());
        }
    }
}

/// A claim stores a folded name, and a second folding must not change that name. The test
/// covers the planes up to U+2FFFF, and no character above U+2FFFF has a mapping.
#[test]
fn a_second_folding_changes_no_letter_with_or_without_an_accent() {
    let accents = ["\u{300}", "\u{301}", "\u{308}", "\u{30C}", "\u{323}", "\u{345}", "\u{344}", "\u{F71}", "\u{1DCE}"];
    for letter in (0..0x3_0000).filter_map(char::from_u32).map(String::from) {
        let folded = fold(&letter);
        assert_eq!(fold(&folded), folded, "{}", letter.escape_unicode());
        if folded == letter {
            continue;
        }
        for accented in accents.map(|accent| format!("{letter}{accent}")) {
            let folded = fold(&accented);
            assert_eq!(fold(&folded), folded, "{}", accented.escape_unicode());
        }
    }
}

#[test]
fn an_invalid_email_address_or_user_name_is_refused() {
    for wrong in ["", "a", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\n", "a\u{FF20}b", "a@b\u{FF20}c", "a@\u{3000}b"] {
        assert_eq!(wrong.parse::<Email>(), Err(NameError::Email), "{wrong:?}");
    }
    let local = |bytes: usize| format!("{}@example.com", "x".repeat(bytes - 12));
    assert!(local(254).parse::<Email>().is_ok());
    assert!(local(255).parse::<Email>().is_err());
    assert_eq!("Zoë@Example.com".parse::<Email>().unwrap().as_str(), "Zoë@Example.com");
    for wrong in ["", " ", "\u{3000}", "a\u{7f}", &"x".repeat(129), &"ﷺ".repeat(42)] {
        assert!(wrong.parse::<Username>().is_err(), "{wrong:?}");
    }
}

/// The life of an order in the design: placing → pending → paid → picking → shipped → delivered. A
/// pending, paid or picking order can be cancelled. A delivered order can be returned.
#[test]
fn an_order_allows_exactly_the_designed_status_changes() {
    use OrderStatus::{Cancelled, Delivered, Paid, Pending, Picking, Placing, Returned, Shipped};
    let all = [Placing, Pending, Paid, Picking, Shipped, Delivered, Cancelled, Returned];
    let steps = [
        (Placing, Pending),
        (Pending, Paid),
        (Paid, Picking),
        (Picking, Shipped),
        (Shipped, Delivered),
        (Pending, Cancelled),
        (Paid, Cancelled),
        (Picking, Cancelled),
        (Delivered, Returned),
    ];
    // The owner may cancel an order that is not being picked yet. Payment from the wallet is
    // checked separately.
    let owners = [(Pending, Cancelled), (Paid, Cancelled)];
    for from in all {
        for to in all {
            assert_eq!(from.may_become(to), steps.contains(&(from, to)), "{from} to {to}");
            assert_eq!(from.owner_may(to), owners.contains(&(from, to)), "{from} to {to} by the owner");
        }
        assert_eq!(from.returns_stock(), [Cancelled, Returned].contains(&from), "{from}");
        assert_eq!(from.is_sale(), [Pending, Paid, Picking, Shipped, Delivered].contains(&from), "{from}");
        assert_eq!(serde_json::to_value(from).unwrap(), from.as_str(), "JSON and keys have the same name");
    }
    let visible: BTreeSet<String> = OrderStatus::VISIBLE.iter().map(ToString::to_string).collect();
    assert_eq!(visible, all.iter().filter(|status| **status != Placing).map(ToString::to_string).collect());
    assert!(OrderStatus::VISIBLE.iter().all(|status| status.as_str().parse() == Ok(*status)));
    assert_eq!(["placing", "Paid", "", "lost"].map(str::parse::<OrderStatus>), [Err(UnknownStatus); 4]);
}

/// The search engine reads `rev` as a signed 64-bit version. If the version of one document does
/// not fit, the engine refuses the whole request with all documents.
#[test]
fn a_version_or_rev_above_the_limit_of_the_search_engine_is_malformed() {
    let product = || World::plain().product().to_item().unwrap();
    for count in ["version", "rev"] {
        let with = |number: u64| {
            let mut item = product();
            item.inner_mut().insert(count.to_owned(), AttributeValue::N(number.to_string()));
            AnyEntity::from_item(item)
        };
        assert!(with(MAX_COUNT).is_ok());
        for beyond in [MAX_COUNT + 1, u64::MAX] {
            let error = with(beyond).unwrap_err();
            assert!(matches!(error, DecodeError::Malformed { .. }), "{error}");
            assert!(error.to_string().contains(&beyond.to_string()), "{error}");
        }
    }
}

/// The expected sizes are calculated by hand from the rules of the DynamoDB Developer Guide.
#[test]
fn an_items_size_is_counted_as_dynamodb_counts() {
    let sized = |value: AttributeValue| size(&Item::from(HashMap::from([("n".to_owned(), value)]))) - 1;
    assert_eq!(sized(AttributeValue::S("é".into())), 2);
    assert_eq!(sized(AttributeValue::N("1234567".into())), 5);
    assert_eq!(sized(AttributeValue::N("-12".into())), 3);
    assert_eq!(sized(AttributeValue::Bool(true)), 1);
    assert_eq!(sized(AttributeValue::Null(true)), 1);
    assert_eq!(sized(AttributeValue::L(vec![])), 3);
    assert_eq!(sized(AttributeValue::L(vec![AttributeValue::S("ab".into())])), 3 + 2 + 1);
    assert_eq!(sized(AttributeValue::M([("key".to_owned(), AttributeValue::S("ab".into()))].into())), 3 + 3 + 2 + 1);
}

/// The limit is 409,600 bytes with the names of attributes. A larger item is not sent.
#[test]
fn an_item_of_400_kilobytes_is_stored_and_a_byte_more_is_refused() {
    let mut content = World::plain().content();
    content.data.text = String::new();
    let room = MAX_ITEM_BYTES - size(&content.to_item().unwrap());
    content.data.text = "x".repeat(room);
    assert_eq!(size(&content.to_item().unwrap()), MAX_ITEM_BYTES);
    content.data.text.push('x');
    assert!(matches!(content.to_item(), Err(EncodeError::TooLarge(bytes)) if bytes == MAX_ITEM_BYTES + 1));
}

#[test]
fn a_country_is_a_listed_code_in_upper_case() {
    let letters = || (b'A'..=b'Z').map(char::from);
    let pairs = letters().flat_map(|first| letters().map(move |second| format!("{first}{second}")));
    assert_eq!(pairs.filter(|code| code.parse::<Country>().is_ok()).count(), 249);
    assert_eq!("DE".parse::<Country>().unwrap().as_str(), "DE");
    for bad in ["", "de", "D", "DEU", "XX", "EU", "DE ", "D E", "Germany"] {
        assert_eq!(bad.parse::<Country>(), Err(UnknownCountry), "{bad}");
    }
}

/// The examples are those of the source of the formats, one for each country.
#[test]
fn a_postal_code_has_the_format_of_its_country() {
    for (country, code) in include_str!("postal_codes.txt").lines().map(|line| line.split_once(' ').unwrap()) {
        let country: Country = country.parse().unwrap();
        assert_eq!(country.check_postal_code(Some(code)), Ok(()), "{country} {code}");
    }
    for (country, code) in [
        ("DE", "D-80331"),
        ("CH", "8001a"),
        ("GB", "12345"),
        ("US", "1234"),
        ("NL", "1234"),
        ("IE", "D02"),
        ("LI", "8001"),
    ] {
        let country: Country = country.parse().unwrap();
        assert_eq!(country.check_postal_code(Some(code)), Err(PostalCodeError::Format), "{country} {code}");
    }
    for (country, code) in [("CH", "CH-8001"), ("GB", "sw1a1aa"), ("CA", "h3z2y7"), ("PL", "00 950"), ("QA", "none")] {
        let country: Country = country.parse().unwrap();
        assert_eq!(country.check_postal_code(Some(code)), Ok(()), "{country} {code}");
    }
}

#[test]
fn an_address_needs_a_postal_code_only_where_every_address_has_one() {
    for country in ["QA", "AE", "HK", "JM", "AO", "UG", "ZW", "JO", "IE", "CL"] {
        assert_eq!(country.parse::<Country>().unwrap().check_postal_code(None), Ok(()), "{country}");
    }
    for country in ["DE", "CH", "US", "GB", "JP"] {
        let missing = Err(PostalCodeError::Missing);
        assert_eq!(country.parse::<Country>().unwrap().check_postal_code(None), missing, "{country}");
    }
}
