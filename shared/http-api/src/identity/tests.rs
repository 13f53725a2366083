#![allow(clippy::unwrap_used)]

use super::*;
use crate::contract::rules::customer;
use crate::contract::{Context, Rule as _};

fn caller(claims: &str) -> Caller {
    Caller::from_claims(&Value::parse(claims).unwrap().into_members())
}

fn in_groups(groups: &str) -> bool {
    caller(&format!(r#"{{"sub":"c1","cognito:groups":{groups}}}"#)).is_staff()
}

#[test]
fn staff_are_recognised_in_every_form_of_the_group_claim() {
    for groups in [
        r#""[staff]""#,
        r#""[staff other]""#,
        r#""[other staff]""#,
        r#"["other","staff"]"#,
        r#""staff""#,
        r#""other, staff""#,
    ] {
        assert!(in_groups(groups), "{groups}");
    }
    assert!(caller(r#"{"sub":"s1","groups":"[staff]"}"#).is_staff());
}

#[test]
fn a_group_with_a_name_like_staff_is_not_staff() {
    for groups in [
        r#""[nonstaff]""#,
        r#""[staffing]""#,
        r#""[non-staff staff-x]""#,
        r#""staff]x""#,
        r#""[staff""#,
        r#""staff]""#,
        r#""[staff,other]""#,
        r#""[[staff]]""#,
        r#""[Staff]""#,
        r#""not staff""#,
        r#""""#,
        r#""[]""#,
        r#"["[staff]"]"#,
        r#"[["staff"]]"#,
        r#"{"staff":true}"#,
        "true",
        "null",
    ] {
        assert!(!in_groups(groups), "{groups}");
    }
}

#[test]
fn me_in_a_body_names_the_caller_and_is_no_id() {
    let ann = caller(r#"{"sub":"ann"}"#);
    let read = |document| customer().read(Value::parse(document).unwrap(), &Context::new(&ann));
    assert_eq!(read(r#""me""#).unwrap().as_str(), "ann");
    assert_eq!(read(r#""Me""#).unwrap().as_str(), "Me");
    assert!(read(r#""a/b""#).is_err() && read("7").is_err());
    assert!(caller(r#"{"sub":"me"}"#).signed_in().is_err());
}

#[test]
fn the_group_claim_of_cognito_takes_precedence_over_the_claim_groups() {
    assert!(!caller(r#"{"sub":"c1","cognito:groups":"[other]","groups":"[staff]"}"#).is_staff());
}

#[test]
fn a_token_proves_only_the_address_that_it_names_as_verified() {
    let proves = |claims: &str, address: &str| {
        let caller = caller(&format!(r#"{{"sub":"c1",{claims}}}"#)).signed_in().unwrap();
        caller.proves(&address.parse().unwrap())
    };
    for verified in [r#""true""#, "true"] {
        let claims = format!(r#""email":"Ann@example.com","email_verified":{verified}"#);
        assert!(proves(&claims, "ann@EXAMPLE.com"), "{verified}");
        assert!(!proves(&claims, "anna@example.com"), "{verified}");
    }
    for verified in [r#""false""#, r#""TRUE""#, r#""1""#, "1", "false", "null", r#"["true"]"#] {
        let claims = format!(r#""email":"ann@example.com","email_verified":{verified}"#);
        assert!(!proves(&claims, "ann@example.com"), "{verified}");
    }
    for claims in [
        r#""email":"ann@example.com""#,
        r#""email_verified":true"#,
        r#""email":["ann@example.com"],"email_verified":true"#,
    ] {
        assert!(!proves(claims, "ann@example.com"), "{claims}");
    }
    // The two addresses have different domains, but the same folded form.
    assert!(!proves(r#""email":"a@strasse.example","email_verified":true"#, "a@straße.example"));
}

#[test]
fn a_caller_without_a_usable_subject_is_anonymous() {
    for claims in [r"{}", r#"{"sub":7}"#, r#"{"cognito:groups":"[staff]"}"#] {
        assert_eq!(caller(claims), Caller::Anonymous, "{claims}");
    }
}

#[test]
fn an_invalid_subject_is_forbidden_with_the_reason() {
    for (subject, why) in [
        ("", "must not be empty"),
        (r"a\u0000b", "must not contain control characters"),
        ("auth0/5f7c", "must not contain `/`, `?`, `%` or `\\`"),
        ("50%", "must not contain `/`, `?`, `%` or `\\`"),
        ("..", "must not be `.` or `..`"),
        ("guest:1", "must not be the id of a guest"),
    ] {
        let caller = caller(&format!(r#"{{"sub":"{subject}","cognito:groups":"[staff]"}}"#));
        assert_eq!((caller.is_staff(), caller.key()), (false, ""), "{subject}");
        let customer = CustomerId::new("c1").unwrap();
        for answer in [caller.signed_in().map(|_| ()), caller.staff().map(|_| ()), caller.owner(&customer).map(|_| ())]
        {
            let problem = answer.unwrap_err();
            assert_eq!(problem.code(), Code::Forbidden, "{subject}");
            let expected = format!("The token's `sub` is not a valid customer id: it {why}.");
            assert!(format!("{problem:?}").contains(&format!("{expected:?}")), "{problem:?}");
        }
    }
}

#[test]
fn callers_get_only_the_identities_that_their_tokens_allow() {
    let (c1, c2) = (CustomerId::new("c1").unwrap(), CustomerId::new("c2").unwrap());
    let customer = caller(r#"{"sub":"c1"}"#);
    let staff = caller(r#"{"sub":"s1","cognito:groups":"[staff]"}"#);

    assert_eq!(customer.signed_in().unwrap().id(), &c1);
    assert_eq!(customer.owner(&c1).unwrap().customer(), &c1);
    assert_eq!(customer.owner(&c2).unwrap_err().code(), Code::NotFound);
    assert_eq!(customer.staff().unwrap_err().code(), Code::Forbidden);

    assert!(staff.owner(&c2).unwrap().is_staff());
    assert_eq!(staff.staff().unwrap().id().as_str(), "s1");

    for refused in [
        Caller::Anonymous.signed_in().map(|_| ()),
        Caller::Anonymous.staff().map(|_| ()),
        Caller::Anonymous.owner(&c1).map(|_| ()),
    ] {
        assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    }
}
