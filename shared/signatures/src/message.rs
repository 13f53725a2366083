//! What a signature covers, and how it is written in the headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::Signature as Ecdsa;
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use ring::digest::{SHA256, digest};
use sfv::{BareItem, Dictionary, FieldType as _, InnerList, ListEntry, Parser};

use crate::keys::{Jwk, SigningKeys};

const LABEL: &str = "sig1";
const ALGORITHM: &str = "ecdsa-p256-sha256";
/// More components are none of a message that anybody signs.
const MAX_COMPONENTS: usize = 30;

/// How old a signature may be that does not name its end, and how far ahead the signer's clock.
const MAX_AGE_SECONDS: i64 = 300;

/// Why a signature is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the message has no {0}")]
    Missing(&'static str),
    #[error("{0}")]
    Invalid(&'static str),
    #[error("the signer's profile has no key with this id")]
    UnknownKey,
    #[error("Content-Digest is not the digest of the body")]
    Digest,
    #[error("only keys of the curve P-256 are supported")]
    Algorithm,
}

/// The values of the two headers of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub input: String,
    pub signature: String,
}

impl SigningKeys {
    /// Signs these components of a message, in their sequence. Returns `None` without a key.
    #[must_use]
    pub fn sign(&self, components: &[(&str, &str)], created: i64) -> Option<Signed> {
        let (name, key) = self.newest()?;
        let covered: Vec<String> = components.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let params = format!("({});created={created};keyid=\"{name}\"", covered.join(" "));
        let signature: Ecdsa = key.sign(base(components.iter().copied(), &params).as_bytes());
        let signature = format!("{LABEL}=:{}:", STANDARD.encode(signature.to_bytes()));
        Some(Signed { input: format!("{LABEL}={params}"), signature })
    }
}

/// Returns the text that is signed.
fn base<'a>(components: impl Iterator<Item = (&'a str, &'a str)>, params: &str) -> String {
    let mut base = String::new();
    for (name, value) in components {
        base.extend(["\"", name, "\": ", value, "\n"]);
    }
    base.extend(["\"@signature-params\": ", params]);
    base
}

/// The signature of a message that somebody else sent.
#[derive(Debug)]
pub struct Signature {
    components: Vec<String>,
    params: String,
    key_id: String,
    created: Option<i64>,
    expires: Option<i64>,
    value: Vec<u8>,
}

impl Signature {
    /// Reads the headers Signature-Input and Signature. Returns `None` if the message has neither.
    ///
    /// # Errors
    /// [`Refusal`] for a signature that is malformed or incomplete, or has another algorithm.
    pub fn read(input: Option<&str>, signature: Option<&str>) -> Result<Option<Self>, Refusal> {
        let (input, signature) = match (input, signature) {
            (None, None) => return Ok(None),
            (None, _) => return Err(Refusal::Missing("Signature-Input")),
            (_, None) => return Err(Refusal::Missing("Signature")),
            (Some(input), Some(signature)) => (input, signature),
        };
        let malformed = Refusal::Invalid("Signature-Input or Signature is malformed");
        let dictionary = |text| Parser::new(text).parse::<Dictionary>().map_err(|_| malformed);
        let (inputs, signatures) = (dictionary(input)?, dictionary(signature)?);
        let value = |label| match signatures.get(label) {
            Some(ListEntry::Item(item)) => item.bare_item.as_byte_sequence().map(<[u8]>::to_vec),
            _ => None,
        };
        let found = inputs.iter().find_map(|(label, entry)| match entry {
            ListEntry::InnerList(list) => Some((list, value(label)?)),
            ListEntry::Item(_) => None,
        });
        let (list, value) = found.ok_or(Refusal::Missing("signature with its components"))?;
        Self::of(list, value).map(Some)
    }

    fn of(list: &InnerList, value: Vec<u8>) -> Result<Self, Refusal> {
        let mut components = Vec::<String>::new();
        for item in &list.items {
            let name = item.bare_item.as_string().filter(|_| item.params.is_empty());
            let name = name.ok_or(Refusal::Invalid("a component has parameters, which are not supported"))?.as_str();
            if components.iter().any(|known| known == name) || components.len() >= MAX_COMPONENTS {
                return Err(Refusal::Invalid("a component occurs twice, or there are too many"));
            }
            components.push(name.to_owned());
        }
        let text = |name: &str| list.params.get(name).and_then(BareItem::as_string).map(|text| text.as_str());
        let number = |name: &str| list.params.get(name).and_then(BareItem::as_integer).map(i64::from);
        if text("alg").is_some_and(|algorithm| algorithm != ALGORITHM) {
            return Err(Refusal::Algorithm);
        }
        let key_id = text("keyid").ok_or(Refusal::Missing("keyid"))?.to_owned();
        let params = vec![ListEntry::InnerList(list.clone())].serialize();
        let params = params.ok_or(Refusal::Invalid("Signature-Input is malformed"))?;
        Ok(Self { components, params, key_id, created: number("created"), expires: number("expires"), value })
    }

    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    #[must_use]
    pub fn covers(&self, component: &str) -> bool {
        self.components.iter().any(|known| known == component)
    }

    /// Checks the signature with the signer's keys at this second. `component` returns the value of a
    /// component in the message.
    ///
    /// # Errors
    /// [`Refusal`], if the signature is not of this message and these keys.
    pub fn check(&self, keys: &[Jwk], now: i64, component: impl Fn(&str) -> Option<String>) -> Result<(), Refusal> {
        let key = keys.iter().find(|key| key.kid == self.key_id).ok_or(Refusal::UnknownKey)?.read()?;
        let end = self.expires.or_else(|| Some(self.created?.saturating_add(MAX_AGE_SECONDS)));
        let is_early = self.created.is_some_and(|created| created > now.saturating_add(MAX_AGE_SECONDS));
        if is_early || end.is_some_and(|end| end < now) {
            return Err(Refusal::Invalid("the signature has expired"));
        }
        let value = |name: &String| component(name).ok_or(Refusal::Invalid("a signed component is missing"));
        let values = self.components.iter().map(value).collect::<Result<Vec<String>, _>>()?;
        let components = self.components.iter().map(String::as_str).zip(values.iter().map(String::as_str));
        let signature =
            Ecdsa::from_slice(&self.value).map_err(|_| Refusal::Invalid("the signature has no 64 bytes"))?;
        let wrong = Refusal::Invalid("the signature is not of this message and this key");
        key.verify(base(components, &self.params).as_bytes(), &signature).map_err(|_| wrong)
    }
}

/// Returns the header Content-Digest of a body.
#[must_use]
pub fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(digest(&SHA256, body)))
}

/// Returns whether a header Content-Digest has the SHA-256 of a body.
#[must_use]
pub fn has_digest(header: &str, body: &[u8]) -> bool {
    let Ok(dictionary) = Parser::new(header).parse::<Dictionary>() else { return false };
    let Some(ListEntry::Item(item)) = dictionary.get("sha-256") else { return false };
    item.bare_item.as_byte_sequence() == Some(digest(&SHA256, body).as_ref())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use key_schema::webhook_secret::WebhookKeys;

    use super::*;

    const KEYS: &str =
        "k2:BgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgY=,k1:BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU=";
    const NOW: i64 = 1_618_884_473;

    /// The message, the key and the signature of RFC 9421, sections 2.4 and B.2.4.
    fn example() -> (Signature, Jwk, impl Fn(&str) -> Option<String>) {
        let input = r#"sig-b24=("@status" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-ecc-p256""#;
        let value =
            "sig-b24=:wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw==:";
        let key = Jwk {
            kid: "test-key-ecc-p256".to_owned(),
            kty: "EC".to_owned(),
            crv: Some("P-256".to_owned()),
            x: Some("qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA".to_owned()),
            y: Some("Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0".to_owned()),
            r#use: None,
            alg: None,
        };
        let digest =
            "sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:";
        let value_of = move |name: &str| {
            let value = match name {
                "@status" => "200",
                "content-type" => "application/json",
                "content-digest" => digest,
                "content-length" => "23",
                _ => return None,
            };
            Some(value.to_owned())
        };
        (Signature::read(Some(input), Some(value)).unwrap().unwrap(), key, value_of)
    }

    #[test]
    fn the_example_of_the_standard_is_valid_and_no_other_message() {
        let (signature, key, value) = example();
        let own = std::slice::from_ref(&key);
        assert_eq!(signature.check(own, NOW, &value), Ok(()));
        for other in ["@status", "content-type", "content-digest", "content-length"] {
            let changed = |name: &str| value(name).map(|value| if name == other { value + "0" } else { value });
            let refusal = signature.check(own, NOW, changed);
            assert_eq!(refusal, Err(Refusal::Invalid("the signature is not of this message and this key")), "{other}");
            let without = |name: &str| value(name).filter(|_| name != other);
            let refusal = signature.check(own, NOW, without);
            assert_eq!(refusal, Err(Refusal::Invalid("a signed component is missing")), "{other}");
        }
        let unknown = Jwk { kid: "other".to_owned(), ..key.clone() };
        assert_eq!(signature.check(&[unknown], NOW, &value), Err(Refusal::UnknownKey));
        for (kty, crv) in [("OKP", "Ed25519"), ("EC", "P-384"), ("RSA", "P-256")] {
            let other = Jwk { kty: kty.to_owned(), crv: Some(crv.to_owned()), ..key.clone() };
            assert_eq!(signature.check(&[other], NOW, &value), Err(Refusal::Algorithm));
        }
        for x in [None, Some("AAAA".to_owned()), Some("%".to_owned()), key.y.clone()] {
            assert!(matches!(signature.check(&[Jwk { x, ..key.clone() }], NOW, &value), Err(Refusal::Invalid(_))));
        }
    }

    #[test]
    fn the_shop_signs_with_its_first_key_and_publishes_all() {
        let keys = SigningKeys::of(&WebhookKeys::new(KEYS).unwrap());
        let public = keys.public();
        assert_eq!(public.iter().map(|key| key.kid.as_str()).collect::<Vec<_>>(), ["k2", "k1"]);
        let components = [("@method", "POST"), ("@path", "/hook")];
        let signed = keys.sign(&components, NOW).unwrap();
        assert_eq!(signed.input, r#"sig1=("@method" "@path");created=1618884473;keyid="k2""#);
        let signature = Signature::read(Some(&signed.input), Some(&signed.signature)).unwrap().unwrap();
        let value =
            |name: &str| components.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        assert!(signature.covers("@path") && !signature.covers("@query"));
        assert_eq!(signature.check(&public, NOW, value), Ok(()));
        // The keys differ, although both are called the same here.
        let swapped = [Jwk { kid: "k2".to_owned(), ..public.last().unwrap().clone() }];
        assert!(signature.check(&swapped, NOW, value).is_err());
        assert!(!format!("{keys:?}").contains("BgYG"));
    }

    #[test]
    fn parameters_may_have_any_sequence_and_an_end() {
        let keys = SigningKeys::of(&WebhookKeys::new(KEYS).unwrap());
        let (name, key) = keys.newest().unwrap();
        let signed = |params: &str| {
            let value: Ecdsa = key.sign(base([("@status", "200")].into_iter(), params).as_bytes());
            let value = format!("x=:{}:", STANDARD.encode(value.to_bytes()));
            Signature::read(Some(&format!("x={params}")), Some(&value))
        };
        let check = |signature: &Signature| signature.check(&keys.public(), NOW, |_| Some("200".to_owned()));
        for params in [
            format!(r#"("@status");keyid="{name}";created={}"#, NOW - 300),
            format!(r#"("@status");created={NOW};nonce="n";keyid="{name}";tag="t";alg="ecdsa-p256-sha256""#),
            format!(r#"("@status");expires={NOW};keyid="{name}""#),
        ] {
            assert_eq!(check(&signed(&params).unwrap().unwrap()), Ok(()), "{params}");
        }
        for (param, second) in [("expires", NOW - 1), ("created", NOW - 301), ("created", NOW + 301)] {
            let late = signed(&format!(r#"("@status");{param}={second};keyid="{name}""#)).unwrap().unwrap();
            assert_eq!(check(&late), Err(Refusal::Invalid("the signature has expired")), "{param}={second}");
        }
        let other = signed(&format!(r#"("@status");keyid="{name}";alg="hmac-sha256""#));
        assert_eq!(other.unwrap_err(), Refusal::Algorithm);
    }

    #[test]
    fn a_malformed_signature_is_refused() {
        let value = Some("sig1=:AAAA:");
        assert!(Signature::read(None, None).unwrap().is_none());
        let missing = |input, signature| Signature::read(input, signature).unwrap_err();
        assert_eq!(missing(None, value), Refusal::Missing("Signature-Input"));
        assert_eq!(missing(Some("sig1=()"), None), Refusal::Missing("Signature"));
        assert_eq!(missing(Some(r#"sig2=();keyid="k""#), value), Refusal::Missing("signature with its components"));
        assert_eq!(missing(Some("sig1=()"), value), Refusal::Missing("keyid"));
        for input in
            ["", "sig1", "(", r#"sig1=("a" "a");keyid="k""#, r#"sig1=("a";req);keyid="k""#, r#"sig1=(a);keyid="k""#]
        {
            assert!(Signature::read(Some(input), value).is_err(), "{input}");
        }
        let (_, key, component) = example();
        let short = Signature::read(Some(r#"sig1=("@status");keyid="test-key-ecc-p256""#), value).unwrap().unwrap();
        assert_eq!(short.check(&[key], NOW, component), Err(Refusal::Invalid("the signature has no 64 bytes")));
    }

    #[test]
    fn a_digest_is_that_of_the_whole_body() {
        // RFC 9530, appendix B.1.
        let header = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
        assert_eq!(content_digest(b"{\"hello\": \"world\"}\n"), header);
        assert!(has_digest(header, b"{\"hello\": \"world\"}\n"));
        assert!(has_digest(&format!("sha-512=:AAAA:, {header}"), b"{\"hello\": \"world\"}\n"));
        for other in ["", "sha-256", "sha-512=:AAAA:", "sha-256=\"x\"", "{"] {
            assert!(!has_digest(other, b"{\"hello\": \"world\"}\n"), "{other}");
        }
        assert!(!has_digest(header, b"{\"hello\": \"world\"}"));
    }
}
