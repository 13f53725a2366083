//! Tests of the codes that verify email addresses.

use std::collections::BTreeSet;

use key_schema::code::{CodeKeys, DIGITS, Subject};

const OLD: &str = "old:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const NEW: &str = "new:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn code(keys: &CodeKeys, key: &str, (customer, email, nonce): (&str, &str, &str)) -> Option<String> {
    let (customer, email) = (customer.parse().unwrap(), email.parse().unwrap());
    keys.code(key, &Subject { customer: &customer, email: &email, nonce })
}

#[test]
fn a_code_has_six_digits_and_depends_on_key_customer_address_and_nonce() {
    let keys = CodeKeys::new(&format!("{NEW},{OLD}")).unwrap();
    let subject = ("c1", "a@example.com", "n1");
    let same = code(&keys, "new", subject).unwrap();
    assert_eq!(code(&keys, "new", subject), Some(same.clone()));
    let mut others = BTreeSet::from([same]);
    for (key, subject) in [
        ("old", subject),
        ("new", ("c2", "a@example.com", "n1")),
        ("new", ("c1", "b@example.com", "n1")),
        ("new", ("c1", "a@example.com", "n2")),
        ("new", ("c", "1a@example.com", "n1")),
    ] {
        assert!(others.insert(code(&keys, key, subject).unwrap()), "{key} {subject:?}");
    }
    assert!(others.iter().all(|code| code.len() == DIGITS && code.bytes().all(|byte| byte.is_ascii_digit())));
}

#[test]
fn codes_spread_over_all_first_digits() {
    let keys = CodeKeys::new(NEW).unwrap();
    let firsts: Vec<u8> = (0..2000)
        .map(|number| code(&keys, "new", ("c1", "a@example.com", &number.to_string())).unwrap().as_bytes()[0])
        .collect();
    for digit in b'0'..=b'9' {
        let count = firsts.iter().filter(|first| **first == digit).count();
        assert!((120..=280).contains(&count), "{digit}: {count}");
    }
}

#[test]
fn only_the_code_itself_passes_and_only_while_its_key_is_known() {
    let (customer, email) = ("c1".parse().unwrap(), "a@example.com".parse().unwrap());
    let subject = Subject { customer: &customer, email: &email, nonce: "n" };
    let before = CodeKeys::new(OLD).unwrap();
    let code = before.code(before.newest(), &subject).unwrap();
    assert!(before.is_code("old", &subject, &code));
    let rotated = CodeKeys::new(&format!("{NEW},{OLD}")).unwrap();
    assert_eq!(rotated.newest(), "new");
    assert!(rotated.is_code("old", &subject, &code));
    for wrong in ["", "000", &format!("{code} "), &format!("0{code}")] {
        assert!(!rotated.is_code("old", &subject, wrong), "{wrong}");
    }
    assert!(!CodeKeys::new(NEW).unwrap().is_code("old", &subject, &code));
    assert!(!format!("{rotated:?}").contains("AAAA"));
}
