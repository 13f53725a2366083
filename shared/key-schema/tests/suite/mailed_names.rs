//! Tests of names in mails.

use key_schema::text::{MAX_MAILED_NAME, mailed_name};

#[test]
fn a_mailed_name_has_no_links_no_line_breaks_and_no_invisible_characters() {
    for (name, mailed) in [
        ("Zoë", Some("Zoë")),
        ("J. R. R. Tolkien", Some("J. R. R. Tolkien")),
        ("J.R.R. Tolkien Jr.", Some("J.R.R. Tolkien Jr.")),
        ("  Ann   Lee ", Some("Ann Lee")),
        ("O'Neil-Smith, Ph.D.", Some("O'Neil-Smith, Ph.D.")),
        ("नेहा शर्मा", Some("नेहा शर्मा")),
        ("Ann\r\nBcc: x@example.com\u{2028}Total", Some("Ann Total")),
        ("Win at https://evil.example/x now", Some("Win at now")),
        ("WWW.evil wwwevil Ann", Some("Ann")),
        ("Ann evil.com", Some("Ann")),
        ("Ann (evil.com) 'evil.co.uk'", Some("Ann")),
        ("Ann evil\u{3002}com evil\u{ff0e}com ｅｖｉｌ．ｃｏｍ evil\u{ff61}com evil․com", Some("Ann")),
        ("Ann ev\u{200b}il.c\u{ad}om", Some("Ann")),
        ("Ann правда.рф 例え.テスト", Some("Ann")),
        ("Ann 192.168.10.10 javascript：x", Some("Ann")),
        ("\u{202e}nnA\u{2066}\u{200f}", Some("nnA")),
        ("https://evil.example", None),
        ("\u{200b}\u{feff}\n", None),
        ("...", None),
        ("", None),
    ] {
        assert_eq!(mailed_name(name).as_deref(), mailed, "{name:?}");
    }
}

#[test]
fn a_mailed_name_has_a_bounded_length() {
    let mailed = mailed_name(&"é ".repeat(500)).unwrap_or_default();
    assert!(mailed.chars().count() <= MAX_MAILED_NAME && mailed.ends_with('é'), "{mailed}");
}
