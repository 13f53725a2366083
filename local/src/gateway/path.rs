//! Decodes a path as an HTTP API of API Gateway does before it selects the route.
//!
//! The service's documentation does not describe this. Recorded requests show that API Gateway
//! decodes the path, ends it at the first `?`, and decodes it once more:
//! `vokerhttp/testdata/ingress-paths.json` of <https://github.com/hotsock/voker/pull/8>.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Returns the path that selects the route. The function receives it as `rawPath`.
///
/// Returns `None`, for which the gateway responds 400, if one of the two decodings fails. A
/// decoding fails if a percent sign lacks its two hex digits, or if the text is not UTF-8.
pub fn routed(sent: &str) -> Option<String> {
    let once = decoded(sent)?;
    let kept = once.split_once('?').map_or(&*once, |(path, _)| path);
    decoded(kept)
}

fn decoded(text: &str) -> Option<String> {
    let mut rest = text.split('%');
    let whole = |part: &str| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !rest.by_ref().skip(1).all(whole) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_as_in_recorded_requests_of_an_http_api() {
        for (sent, seen) in [
            ("/capture/plain", Some("/capture/plain")),
            ("/capture/space%20value", Some("/capture/space value")),
            ("/capture/question%3Fvalue", Some("/capture/question")),
            ("/capture/percent%25done", None),
            ("/capture/hash%23value", Some("/capture/hash#value")),
            ("/capture/slash%2Fvalue", Some("/capture/slash/value")),
            ("/capture/unicode-%CE%BB-%E4%B8%96%E7%95%8C", Some("/capture/unicode-λ-世界")),
            ("/capture/literal%252Fvalue", Some("/capture/literal/value")),
            ("/capture/literal%253Fvalue", Some("/capture/literal?value")),
            ("/capture/literal%2525value", Some("/capture/literal%value")),
        ] {
            assert_eq!(routed(sent).as_deref(), seen, "{sent}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_decoded_is_refused() {
        for sent in ["/%", "/%2", "/%zz", "/%+1", "/%FF", "/%25FF", "/%252", "/%2525%25"] {
            assert_eq!(routed(sent), None, "{sent}");
        }
        assert_eq!(routed("/a%3F%25").as_deref(), Some("/a"), "the part after an encoded question mark is dropped");
    }
}
