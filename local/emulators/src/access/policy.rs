//! Evaluates the statements of identity-based policies by the rules that AWS documents.

use std::borrow::Cow;

use serde::Serialize;

/// One action and one resource of a statement. A statement with several actions or resources
/// becomes several rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub sid: Option<String>,
    /// Whether the rule allows the action. Otherwise it denies the action.
    pub allow: bool,
    /// The action, e.g. `dynamodb:Query`. It may contain the wildcards `*` and `?`.
    pub action: String,
    /// The resource's ARN. It may contain the same wildcards.
    pub resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Need {
    pub action: Cow<'static, str>,
    pub resource: String,
}

impl Need {
    pub(crate) fn new(action: impl Into<Cow<'static, str>>, resource: String) -> Self {
        Self { action: action.into(), resource }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// The rule at this index is the first that allows the call, and no rule denies it.
    Allowed(usize),
    Denied,
    NotAllowed,
}

pub(super) fn evaluate(rules: &[Rule], need: &Need) -> Decision {
    let mut decision = Decision::NotAllowed;
    for (at, rule) in rules.iter().enumerate() {
        if !is_action(&rule.action, &need.action) || !is_resource(&rule.resource, &need.resource) {
            continue;
        }
        if !rule.allow {
            return Decision::Denied;
        }
        if decision == Decision::NotAllowed {
            decision = Decision::Allowed(at);
        }
    }
    decision
}

/// Returns whether an action matches. Case is ignored.
fn is_action(pattern: &str, action: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern.eq_ignore_ascii_case(action);
    }
    let lower = |text: &str| text.to_ascii_lowercase().into_bytes();
    matches(&lower(pattern), &lower(action), |_| true)
}

/// A wildcard matches within one segment of the ARN. `*` at the end of a segment also matches the
/// following segments.
fn is_resource(pattern: &str, resource: &str) -> bool {
    let ends_segment = |rest: &[u8]| matches!(rest.first(), None | Some(b':'));
    pattern == resource || matches(pattern.as_bytes(), resource.as_bytes(), ends_segment)
}

/// Returns whether `pattern` matches `text`. `?` matches one byte except a colon, and `*` any
/// number of bytes. `*` matches colons only if `crosses` accepts the rest of the pattern.
fn matches(pattern: &[u8], text: &[u8], crosses: impl Fn(&[u8]) -> bool) -> bool {
    // Most rules differ from the call before their first wildcard.
    let fixed = pattern.iter().take_while(|byte| !matches!(byte, b'*' | b'?')).count();
    let ((fixed, pattern), Some((start, text))) = (pattern.split_at(fixed), text.split_at_checked(fixed)) else {
        return false;
    };
    if fixed != start {
        return false;
    }
    // `ends[n]` says whether the pattern so far matches the first `n` bytes of the text.
    let mut ends = vec![false; text.len() + 1];
    if let Some(first) = ends.first_mut() {
        *first = true;
    }
    let mut rest = pattern;
    while let Some((&byte, tail)) = rest.split_first() {
        let mut next = vec![false; ends.len()];
        let mut reached = false;
        for (at, end) in next.iter_mut().enumerate() {
            let before = at.checked_sub(1).and_then(|before| Some((*ends.get(before)?, *text.get(before)?)));
            *end = match (byte, before) {
                (b'*', before) => {
                    let goes_on = before.is_some_and(|(_, passed)| passed != b':' || crosses(tail));
                    ends.get(at).copied().unwrap_or_default() || (reached && goes_on)
                }
                (b'?', Some((was, passed))) => was && passed != b':',
                (byte, Some((was, passed))) => was && passed == byte,
                (_, None) => false,
            };
            reached = *end;
        }
        ends = next;
        rest = tail;
    }
    ends.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/shop";

    fn rule(allow: bool, action: &str, resource: &str) -> Rule {
        Rule { sid: None, allow, action: action.to_owned(), resource: resource.to_owned() }
    }

    fn decided(rules: &[Rule], action: &'static str, resource: &str) -> Decision {
        evaluate(rules, &Need::new(action, resource.to_owned()))
    }

    #[test]
    fn an_action_that_no_rule_allows_is_not_allowed() {
        assert_eq!(decided(&[], "dynamodb:GetItem", TABLE), Decision::NotAllowed);
        let rules = [rule(true, "dynamodb:GetItem", TABLE)];
        assert_eq!(decided(&rules, "dynamodb:GetItem", TABLE), Decision::Allowed(0));
        assert_eq!(decided(&rules, "dynamodb:PutItem", TABLE), Decision::NotAllowed);
        assert_eq!(decided(&rules, "dynamodb:GetItem", &format!("{TABLE}2")), Decision::NotAllowed);
        // A grant for a table does not include its indexes. A grant for an index does not include
        // its table.
        assert_eq!(decided(&rules, "dynamodb:GetItem", &format!("{TABLE}/index/GSI1")), Decision::NotAllowed);
    }

    #[test]
    fn an_explicit_deny_wins_at_any_position() {
        let (allow, deny) = (rule(true, "dynamodb:*", "*"), rule(false, "dynamodb:DeleteItem", TABLE));
        for rules in [[allow.clone(), deny.clone()], [deny, allow]] {
            assert_eq!(decided(&rules, "dynamodb:DeleteItem", TABLE), Decision::Denied);
            assert!(matches!(decided(&rules, "dynamodb:PutItem", TABLE), Decision::Allowed(_)));
        }
    }

    #[test]
    fn the_first_rule_that_allows_a_call_decides() {
        let rules = [rule(true, "s3:PutObject", "x"), rule(true, "s3:GetObject", "*"), rule(true, "s3:GetObject", "x")];
        assert_eq!(decided(&rules, "s3:GetObject", "x"), Decision::Allowed(1));
    }

    #[test]
    fn actions_match_with_wildcards_and_without_regard_to_case() {
        for (pattern, action, expected) in [
            ("*", "s3:GetObject", true),
            ("s3:*", "s3:GetObject", true),
            ("s3:Get*", "s3:GetObject", true),
            ("S3:getobject", "s3:GetObject", true),
            ("s3:?etObject", "s3:GetObject", true),
            ("s3:*Object", "s3:GetObject", true),
            ("es:ESHttp?et", "es:ESHttpGet", true),
            ("s3:Get", "s3:GetObject", false),
            ("s3:GetObject?", "s3:GetObject", false),
            ("s3:*Bucket", "s3:GetObject", false),
            ("", "s3:GetObject", false),
        ] {
            assert_eq!(is_action(pattern, action), expected, "{pattern} {action}");
        }
    }

    #[test]
    fn resources_match_with_wildcards_and_exact_case() {
        for (pattern, resource, expected) in [
            ("*", TABLE, true),
            ("arn:aws:dynamodb:*:*:table/shop", TABLE, true),
            ("arn:aws:dynamodb:us-east-?:000000000000:table/*", TABLE, true),
            ("arn:aws:dynamodb:*", TABLE, true),
            ("arn:aws:dynamodb:us-east-1:000000000000:table/Shop", TABLE, false),
            ("arn:aws:s3:::b/expired/*", "arn:aws:s3:::b/expired/a/b:c.json", true),
            ("arn:aws:s3:::b/expired/*", "arn:aws:s3:::b/expired/", true),
            ("arn:aws:s3:::b/expired/*", "arn:aws:s3:::b/expired", false),
            ("arn:aws:s3:::b/*/*.json", "arn:aws:s3:::b/x/y/z.json", true),
            ("arn:aws:s3:::b/*/*.json", "arn:aws:s3:::b/z.json", false),
            // A wildcard in the middle of a segment does not match a colon.
            ("arn:aws:s3:::b*d", "arn:aws:s3:::b:d", false),
            ("arn:aws:s3:::b?d", "arn:aws:s3:::b:d", false),
            ("arn:aws:s3*:b", "arn:aws:s3:::b", true),
            // In the pattern, a dot is not a wildcard.
            ("arn:aws:s3:::b.d", "arn:aws:s3:::bxd", false),
        ] {
            assert_eq!(is_resource(pattern, resource), expected, "{pattern} {resource}");
        }
    }
}
