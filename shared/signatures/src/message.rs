//! What a signature covers, and how it is written in the headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::Signature as Ecdsa;
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use ring::digest::{SHA256, digest};
use sfv::{BareItem, Dictionary, FieldType as _, InnerList, Item, ListEntry, Parser};

use crate::keys::{Jwk, SigningKeys};

const LABEL: &str = "sig1";
const ALGORITHM: &str = "ecdsa-p256-sha256";
/// The tag of a signature that the readers of Web Bot Auth understand, too.
const WEB_BOT_AUTH: &str = "web-bot-auth";
/// A message may have further signatures, for other readers.
const MAX_SIGNATURES: usize = 4;
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
        let values = components.iter().map(|(_, value)| *value);
        let signature: Ecdsa = key.sign(base(covered.iter().zip(values), &params).as_bytes());
        let signature = format!("{LABEL}=:{}:", STANDARD.encode(signature.to_bytes()));
        Some(Signed { input: format!("{LABEL}={params}"), signature })
    }
}

/// Returns the text that is signed.
fn base(components: impl Iterator<Item = (impl AsRef<str>, impl AsRef<str>)>, params: &str) -> String {
    let mut base = String::new();
    for (component, value) in components {
        base.extend([component.as_ref(), ": ", value.as_ref(), "\n"]);
    }
    base.extend(["\"@signature-params\": ", params]);
    base
}

/// A part of a message that a signature covers.
#[derive(Debug, PartialEq, Eq)]
struct Component {
    name: String,
    /// The member of a header that is a dictionary.
    member: Option<String>,
}

impl Component {
    fn read(item: &Item) -> Option<Self> {
        let name = item.bare_item.as_string()?.as_str().to_owned();
        let member = match item.params.first() {
            None => None,
            Some((param, value)) if param.as_str() == "key" && item.params.len() == 1 => {
                Some(value.as_string()?.as_str().to_owned())
            }
            Some(_) => return None,
        };
        Some(Self { name, member })
    }

    /// Returns the component and its value as they are signed.
    fn line(&self, message: impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
        let (name, value) = (&self.name, message(&self.name)?);
        let Some(member) = &self.member else { return Some((format!("\"{name}\""), value)) };
        let dictionary = Parser::new(&value).parse::<Dictionary>().ok()?;
        let value = vec![dictionary.get(member.as_str())?.clone()].serialize()?;
        Some((format!("\"{name}\";key=\"{member}\""), value))
    }
}

/// A signature of a message that somebody else sent.
#[derive(Debug)]
pub struct Signature {
    components: Vec<Component>,
    params: String,
    key_id: String,
    is_for_bots: bool,
    created: Option<i64>,
    expires: Option<i64>,
    value: Vec<u8>,
}

impl Signature {
    /// Reads the headers Signature-Input and Signature. Returns nothing if the message has neither.
    ///
    /// # Errors
    /// [`Refusal`], if no signature is well-formed and complete, and of the algorithm that is supported.
    pub fn read(input: Option<&str>, signature: Option<&str>) -> Result<Vec<Self>, Refusal> {
        let (input, signature) = match (input, signature) {
            (None, None) => return Ok(Vec::new()),
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
        let found = inputs.iter().filter_map(|(label, entry)| match entry {
            ListEntry::InnerList(list) => Some(Self::of(list, value(label)?)),
            ListEntry::Item(_) => None,
        });
        let (mut read, mut refusal) = (Vec::new(), Refusal::Missing("signature with its components"));
        for found in found.take(MAX_SIGNATURES) {
            match found {
                Ok(signature) => read.push(signature),
                Err(refused) => refusal = refused,
            }
        }
        if read.is_empty() { Err(refusal) } else { Ok(read) }
    }

    fn of(list: &InnerList, value: Vec<u8>) -> Result<Self, Refusal> {
        let mut components = Vec::<Component>::new();
        for item in &list.items {
            let unknown = Refusal::Invalid("a component has parameters that are not supported");
            let component = Component::read(item).ok_or(unknown)?;
            if components.contains(&component) || components.len() >= MAX_COMPONENTS {
                return Err(Refusal::Invalid("a component occurs twice, or there are too many"));
            }
            components.push(component);
        }
        let text = |name: &str| list.params.get(name).and_then(BareItem::as_string).map(|text| text.as_str());
        let number = |name: &str| list.params.get(name).and_then(BareItem::as_integer).map(i64::from);
        if text("alg").is_some_and(|algorithm| algorithm != ALGORITHM) {
            return Err(Refusal::Algorithm);
        }
        let is_for_bots = match text("tag") {
            None => false,
            Some(WEB_BOT_AUTH) => true,
            Some(_) => return Err(Refusal::Invalid("the tag says that the signature is for others")),
        };
        let key_id = text("keyid").ok_or(Refusal::Missing("keyid"))?.to_owned();
        let params = vec![ListEntry::InnerList(list.clone())].serialize();
        let params = params.ok_or(Refusal::Invalid("Signature-Input is malformed"))?;
        let (created, expires) = (number("created"), number("expires"));
        Ok(Self { components, params, key_id, is_for_bots, created, expires, value })
    }

    #[must_use]
    pub fn covers(&self, component: &str) -> bool {
        self.components.iter().any(|known| known.name == component && known.member.is_none())
    }

    /// Returns whether the signature covers a member of a header, or all of it.
    #[must_use]
    pub fn covers_member(&self, header: &str) -> bool {
        self.components.iter().any(|known| known.name == header)
    }

    /// Checks the signature with the signer's keys at this second. `message` returns the value of a
    /// component.
    ///
    /// # Errors
    /// [`Refusal`], if the signature is not of this message and these keys.
    pub fn check(&self, keys: &[Jwk], now: i64, message: impl Fn(&str) -> Option<String>) -> Result<(), Refusal> {
        let own = keys.iter().find(|key| key.kid == self.key_id && key.is_for_signatures());
        let own = own.ok_or(Refusal::UnknownKey)?;
        let key = own.read()?;
        if self.is_for_bots && own.thumbprint() != self.key_id {
            return Err(Refusal::Invalid("the id of the key is not its thumbprint"));
        }
        let end = self.expires.or_else(|| Some(self.created?.saturating_add(MAX_AGE_SECONDS)));
        let is_early = self.created.is_some_and(|created| created > now.saturating_add(MAX_AGE_SECONDS));
        if is_early || end.is_some_and(|end| end < now) {
            return Err(Refusal::Invalid("the signature has expired"));
        }
        let missing = Refusal::Invalid("a signed component is missing");
        let lines = self.components.iter().map(|component| component.line(&message).ok_or(missing));
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        let signature =
            Ecdsa::from_slice(&self.value).map_err(|_| Refusal::Invalid("the signature has no 64 bytes"))?;
        let wrong = Refusal::Invalid("the signature is not of this message and this key");
        key.verify(base(lines.into_iter(), &self.params).as_bytes(), &signature).map_err(|_| wrong)
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

    fn only(input: Option<&str>, value: Option<&str>) -> Result<Signature, Refusal> {
        Signature::read(input, value).map(|mut read| read.remove(0))
    }

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
            key_ops: None,
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
        (only(Some(input), Some(value)).unwrap(), key, value_of)
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
        let signature = only(Some(&signed.input), Some(&signed.signature)).unwrap();
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
            let value: Ecdsa = key.sign(base([("\"@status\"", "200")].into_iter(), params).as_bytes());
            let value = format!("x=:{}:", STANDARD.encode(value.to_bytes()));
            only(Some(&format!("x={params}")), Some(&value))
        };
        let check = |signature: &Signature| signature.check(&keys.public(), NOW, |_| Some("200".to_owned()));
        for params in [
            format!(r#"("@status");keyid="{name}";created={}"#, NOW - 300),
            format!(r#"("@status");created={NOW};nonce="n";keyid="{name}";alg="ecdsa-p256-sha256""#),
            format!(r#"("@status");expires={NOW};keyid="{name}""#),
        ] {
            assert_eq!(check(&signed(&params).unwrap()), Ok(()), "{params}");
        }
        for (param, second) in [("expires", NOW - 1), ("created", NOW - 301), ("created", NOW + 301)] {
            let late = signed(&format!(r#"("@status");{param}={second};keyid="{name}""#)).unwrap();
            assert_eq!(check(&late), Err(Refusal::Invalid("the signature has expired")), "{param}={second}");
        }
        let other = signed(&format!(r#"("@status");keyid="{name}";alg="hmac-sha256""#));
        assert_eq!(other.unwrap_err(), Refusal::Algorithm);
        let other = signed(&format!(r#"("@status");keyid="{name}";tag="other""#));
        assert_eq!(other.unwrap_err(), Refusal::Invalid("the tag says that the signature is for others"));
    }

    #[test]
    fn a_key_for_other_purposes_is_none() {
        let (signature, key, value) = example();
        let check = |key: Jwk| signature.check(&[key], NOW, &value);
        let ops = |ops: &[&str]| Some(ops.iter().map(|op| (*op).to_owned()).collect());
        for good in [
            Jwk { r#use: Some("sig".to_owned()), alg: Some("ES256".to_owned()), ..key.clone() },
            Jwk { key_ops: ops(&["sign", "verify"]), ..key.clone() },
        ] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in [Jwk { r#use: Some("enc".to_owned()), ..key.clone() }, Jwk { key_ops: ops(&[]), ..key.clone() }] {
            assert_eq!(check(bad), Err(Refusal::UnknownKey));
        }
        assert_eq!(check(Jwk { alg: Some("ES384".to_owned()), ..key.clone() }), Err(Refusal::Algorithm));
        // A second key with the same id may be the one for signatures.
        let other = Jwk { r#use: Some("enc".to_owned()), x: None, ..key.clone() };
        assert_eq!(signature.check(&[other, key], NOW, &value), Ok(()));
    }

    /// The signer's header has a member for each signature, and a signature covers its own.
    #[test]
    fn a_signature_for_web_bot_auth_covers_a_member_and_names_the_thumbprint() {
        let keys = SigningKeys::of(&WebhookKeys::new(KEYS).unwrap());
        let (_, key) = keys.newest().unwrap();
        let mut public = keys.public().remove(0);
        let thumbprint = public.thumbprint();
        let agent = r#"other="https://a.example";type=directory, s="https://b.example/p";type=jwks_uri"#;
        let signed = |member: &str, value: &str, id: &str| {
            let params = format!(
                r#"("@status" "signature-agent";key="{member}");keyid="{id}";expires={NOW};tag="web-bot-auth""#
            );
            let lines = [("\"@status\"".to_owned(), "200"), (format!("\"signature-agent\";key=\"{member}\""), value)];
            let signature: Ecdsa = key.sign(base(lines.into_iter(), &params).as_bytes());
            // The first signature is for somebody else.
            let input = format!(r#"x=("@status");keyid="{id}";tag="other", s={params}"#);
            let value = format!("x=:AAAA:, s=:{}:", STANDARD.encode(signature.to_bytes()));
            only(Some(&input), Some(&value)).unwrap()
        };
        let message = |name: &str| match name {
            "@status" => Some("200".to_owned()),
            "signature-agent" => Some(agent.to_owned()),
            _ => None,
        };
        let own = r#""https://b.example/p";type=jwks_uri"#;
        public.kid.clone_from(&thumbprint);
        let signature = signed("s", own, &thumbprint);
        assert!(signature.covers_member("signature-agent") && !signature.covers("signature-agent"));
        assert_eq!(signature.check(std::slice::from_ref(&public), NOW, message), Ok(()));
        let wrong = Err(Refusal::Invalid("the signature is not of this message and this key"));
        assert_eq!(signed("other", own, &thumbprint).check(std::slice::from_ref(&public), NOW, message), wrong);
        let missing = Err(Refusal::Invalid("a signed component is missing"));
        assert_eq!(signed("none", own, &thumbprint).check(std::slice::from_ref(&public), NOW, message), missing);
        public.kid = "k2".to_owned();
        let renamed = Err(Refusal::Invalid("the id of the key is not its thumbprint"));
        assert_eq!(signed("s", own, "k2").check(&[public], NOW, message), renamed);
    }

    #[test]
    fn the_thumbprint_is_that_of_the_standard() {
        let (_, key, _) = example();
        assert_eq!(key.thumbprint(), "ydQXMtvbsOsZyFir-Y7A8t7fKEM1gbKPvyFkdpu4fvI");
    }

    #[test]
    fn a_malformed_signature_is_refused() {
        let value = Some("sig1=:AAAA:");
        assert!(Signature::read(None, None).unwrap().is_empty());
        let missing = |input, signature| only(input, signature).unwrap_err();
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
        let short = only(Some(r#"sig1=("@status");keyid="test-key-ecc-p256""#), value).unwrap();
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
