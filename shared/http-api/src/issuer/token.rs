//! A token before its verification: a JWS in compact form (RFC 7515) with claims as its payload
//! (RFC 7519).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use key_schema::instant::Instant;

use crate::json::{Members, Value};

/// The maximum length of a token. API Gateway has the same limit for the total length of a
/// request's headers.
const MAX_BYTES: usize = 10_240;

/// A signature algorithm. All other algorithms are refused, including `none` and all algorithms
/// with a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256. Cognito uses it. The JWT authorizer of an HTTP API accepts
    /// only algorithms based on RSA.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
}

impl Algorithm {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

/// A reason why a token is invalid, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Invalid {
    #[error("the token is not a signed JWT in compact form")]
    Form,
    #[error("the signature algorithm is not supported")]
    Algorithm,
    #[error("the token names a key that the issuer does not have")]
    Key,
    #[error("the signature is not valid for the issuer's key")]
    Signature,
    #[error("another issuer made the token")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token has expired, or is not valid yet")]
    Time,
}

/// A token with readable parts. The token and its claims do not implement `Debug`, so they cannot
/// be logged by mistake.
pub(super) struct Token<'a> {
    algorithm: Algorithm,
    key_id: String,
    payload: String,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Token<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Invalid> {
        if text.len() > MAX_BYTES {
            return Err(Invalid::Form);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Invalid::Form)?;
        let (header, payload) = signed.split_once('.').ok_or(Invalid::Form)?;
        let header = decode(header)?;
        let header = object(&header)?;
        // `crit` names extensions that the recipient must support. This module supports no
        // extension.
        if header.contains_key("crit") {
            return Err(Invalid::Form);
        }
        let text_of = |name: &str| match header.get(name) {
            Some(Value::Text(text)) => Ok(text.as_ref()),
            _ => Err(Invalid::Form),
        };
        Ok(Self {
            algorithm: Algorithm::named(text_of("alg")?).ok_or(Invalid::Algorithm)?,
            key_id: text_of("kid")?.to_owned(),
            payload: decode(payload)?,
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(|_| Invalid::Form)?,
        })
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) fn key_id(&self) -> &str {
        &self.key_id
    }

    pub(super) fn payload(&self) -> &str {
        &self.payload
    }

    pub(super) fn signed(&self) -> &[u8] {
        self.signed.as_bytes()
    }

    pub(super) fn signature(&self) -> &[u8] {
        &self.signature
    }
}

pub(super) struct Claims<'a>(Members<'a>);

impl<'a> Claims<'a> {
    pub(super) fn parse(payload: &'a str) -> Result<Self, Invalid> {
        object(payload).map(Self)
    }

    pub(super) fn members(&self) -> &Members<'a> {
        &self.0
    }

    /// Checks that the issuer issued the token for one of these audiences, and that the token is
    /// valid now.
    pub(super) fn check(
        &self,
        issuer: &str,
        audiences: &[String],
        now: Instant,
        leeway: Duration,
    ) -> Result<(), Invalid> {
        if !self.says("iss", issuer) {
            return Err(Invalid::Issuer);
        }
        let is_meant =
            |one: &Value<'_>| matches!(one, Value::Text(name) if audiences.iter().any(|known| known == name));
        let meant = match self.0.get("aud") {
            Some(Value::Array(several)) => several.iter().any(is_meant),
            Some(one) => is_meant(one),
            // Cognito's access tokens have `client_id` instead of `aud`.
            None => self.0.get("client_id").is_some_and(is_meant),
        };
        if !meant {
            return Err(Invalid::Audience);
        }
        let (now, leeway) = (i128::from(now.as_seconds()), i128::from(leeway.as_secs()));
        let expires = self.seconds("exp")?.ok_or(Invalid::Time)?;
        let begins = self.seconds("nbf")?.max(self.seconds("iat")?);
        if now < expires + leeway && begins.is_none_or(|begins| begins <= now + leeway) {
            Ok(())
        } else {
            Err(Invalid::Time)
        }
    }

    fn says(&self, claim: &str, text: &str) -> bool {
        matches!(self.0.get(claim), Some(Value::Text(said)) if said == text)
    }

    /// Returns a claim that is an instant, in whole seconds since 1970.
    fn seconds(&self, claim: &str) -> Result<Option<i128>, Invalid> {
        match self.0.get(claim) {
            None => Ok(None),
            Some(Value::Integer(seconds)) => Ok(Some(*seconds)),
            Some(_) => Err(Invalid::Time),
        }
    }
}

fn decode(part: &str) -> Result<String, Invalid> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| Invalid::Form)?;
    String::from_utf8(bytes).map_err(|_| Invalid::Form)
}

fn object(text: &str) -> Result<Members<'_>, Invalid> {
    match Value::parse(text) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(Invalid::Form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn part(text: &str) -> String {
        URL_SAFE_NO_PAD.encode(text)
    }

    fn parsed(text: &str) -> Result<(Algorithm, String), Invalid> {
        Token::parse(text).map(|token| (token.algorithm(), token.key_id().to_owned()))
    }

    fn with_header(header: &str) -> Result<(Algorithm, String), Invalid> {
        parsed(&format!("{}.{}.{}", part(header), part("{}"), part("signature")))
    }

    fn checked(claims: &str) -> Result<(), Invalid> {
        let now = Instant::EPOCH.plus_seconds(NOW);
        Claims::parse(claims)?.check("https://issuer", &["shop".to_owned()], now, Duration::from_secs(10))
    }

    #[test]
    fn a_token_has_three_parts_and_its_first_part_names_the_algorithm_and_the_key() {
        assert_eq!(with_header(r#"{"alg":"RS256","kid":"k","typ":"JWT"}"#), Ok((Algorithm::Rs256, "k".to_owned())));
        assert_eq!(with_header(r#"{"alg":"ES256","kid":""}"#), Ok((Algorithm::Es256, String::new())));
        for alg in ["none", "None", "HS256", "RS384", "RS512", "PS256", "ES384", "EdDSA", "rs256", ""] {
            assert_eq!(with_header(&format!(r#"{{"alg":"{alg}","kid":"k"}}"#)), Err(Invalid::Algorithm), "{alg}");
        }
        for header in [
            r#"{"alg":"RS256"}"#,
            r#"{"kid":"k"}"#,
            r#"{"alg":["RS256"],"kid":"k"}"#,
            r#"{"alg":"RS256","kid":7}"#,
            r#"{"alg":"RS256","kid":"k","crit":["b64"],"b64":false}"#,
            r#"{"alg":"none","alg":"RS256","kid":"k"}"#,
            r#"["RS256"]"#,
            "",
        ] {
            assert_eq!(with_header(header), Err(Invalid::Form), "{header}");
        }
    }

    #[test]
    fn an_invalid_or_too_long_token_is_refused() {
        let good = format!("{}.{}.{}", part(r#"{"alg":"RS256","kid":"k"}"#), part("{}"), part("s"));
        assert!(parsed(&good).is_ok());
        let padded = format!("{good}=");
        let four = format!("{good}.{}", part("s"));
        let long = format!("{good}{}", "A".repeat(MAX_BYTES));
        for text in ["", ".", "..", "a.b.c", "é.é.é", "x y z", &good.replace('.', ","), &padded, &four, &long] {
            assert_eq!(parsed(text), Err(Invalid::Form), "{}", text.get(..40).unwrap_or(text));
        }
    }

    #[test]
    fn claims_are_valid_for_their_issuer_and_audience() {
        let with = |more: &str| checked(&format!(r#"{{"exp":{}{more}}}"#, NOW + 60));
        for good in [
            r#","iss":"https://issuer","aud":"shop""#,
            r#","iss":"https://issuer","aud":["other","shop"]"#,
            r#","iss":"https://issuer","client_id":"shop""#,
            r#","iss":"https://issuer","aud":"shop","client_id":"other""#,
        ] {
            assert_eq!(with(good), Ok(()), "{good}");
        }
        for bad in [
            r#","aud":"shop""#,
            r#","iss":"https://issuer/","aud":"shop""#,
            r#","iss":["https://issuer"],"aud":"shop""#,
            r#","iss":null,"aud":"shop""#,
        ] {
            assert_eq!(with(bad), Err(Invalid::Issuer), "{bad}");
        }
        for bad in [
            r#","iss":"https://issuer""#,
            r#","iss":"https://issuer","aud":"other""#,
            r#","iss":"https://issuer","aud":"other","client_id":"shop""#,
            r#","iss":"https://issuer","aud":null,"client_id":"shop""#,
            r#","iss":"https://issuer","aud":[],"client_id":"shop""#,
            r#","iss":"https://issuer","aud":["shops",["shop"],7]"#,
            r#","iss":"https://issuer","client_id":["shop"]"#,
        ] {
            assert_eq!(with(bad), Err(Invalid::Audience), "{bad}");
        }
        for text in ["", "[]", "null", r#"{"iss":"https://issuer","iss":"https://issuer"}"#] {
            assert_eq!(checked(text), Err(Invalid::Form), "{text}");
        }
    }

    #[test]
    fn claims_are_valid_only_within_their_period_extended_by_a_tolerance_for_clocks() {
        let at = |times: &str| checked(&format!(r#"{{"iss":"https://issuer","aud":"shop"{times}}}"#));
        let exp = |seconds: i64| at(&format!(r#","exp":{}"#, NOW + seconds));
        assert_eq!((exp(1), exp(-9), exp(-10)), (Ok(()), Ok(()), Err(Invalid::Time)));
        for name in ["nbf", "iat"] {
            let from = |seconds: i64| at(&format!(r#","exp":{},"{name}":{}"#, NOW + 60, NOW + seconds));
            assert_eq!((from(-60), from(10), from(11)), (Ok(()), Ok(()), Err(Invalid::Time)), "{name}");
            for value in ["\"1\"", "null", "1.5", "true"] {
                assert_eq!(
                    at(&format!(r#","exp":{},"{name}":{value}"#, NOW + 60)),
                    Err(Invalid::Time),
                    "{name} {value}"
                );
            }
        }
        for exp in ["", r#","exp":null"#, r#","exp":"9999999999""#, r#","exp":9999999999.5"#, r#","exp":[9999999999]"#]
        {
            assert_eq!(at(exp), Err(Invalid::Time), "{exp}");
        }
        assert_eq!(at(&format!(r#","exp":{}"#, u64::MAX)), Ok(()));
    }
}
