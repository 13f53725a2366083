//! Forged and odd tokens, which the test makes itself. Some are not signed with the issuer's key.
//! The others are signed with it, and have unusual claims.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use local::token::{AUDIENCE, ISSUER, SigningKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use ring::{digest, hmac};
use serde_json::{Value as Json, json};

use super::access::{Bearer, Person};
use super::people::{ANN, STRANGER};

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

pub struct Token {
    pub what: &'static str,
    pub bearer: Bearer,
    pub header: String,
}

/// Signs any claims.
pub struct Forger {
    key: EcdsaKeyPair,
    id: String,
    /// A key that the issuer does not have.
    other: EcdsaKeyPair,
    now: u64,
}

impl Forger {
    /// Makes a forger with the signing key of the running system.
    pub fn with_the_key() -> Self {
        Self::of(&std::fs::read(SigningKey::file()).unwrap())
    }

    /// Makes a forger with a new key that no system has.
    pub fn without_the_key() -> Self {
        Self::of(&fresh_key())
    }

    fn of(pkcs8: &[u8]) -> Self {
        let key = pair(pkcs8);
        let id = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, key.public_key().as_ref()));
        Self { key, id, other: pair(&fresh_key()), now: std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() }
    }

    /// Returns every token. Each has its own name.
    pub fn all(&self) -> Vec<Token> {
        [self.refused(), self.nameless(), self.misnamed(), self.grouped()].into_iter().flatten().collect()
    }

    /// Returns tokens that the authorizer refuses. Most of them are staff tokens
    /// with one fault. The others contain no token.
    fn refused(&self) -> Vec<Token> {
        let (staff, header) = (self.staff(), self.header());
        let bearer = |what: &'static str, token: &str| Token::new(what, Bearer::Refused, format!("Bearer {token}"));
        let with = |claims: Json| self.sign(&header, &self.claims(&claims));
        let without = |name: &str| {
            let mut claims = self.staff();
            claims.as_object_mut().unwrap().remove(name);
            self.sign(&header, &claims)
        };
        let other_header = |changes: Json| {
            let mut changed = self.header();
            changed.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            changed
        };
        let good = self.sign(&header, &staff);
        let (message, signature) = good.rsplit_once('.').unwrap();
        let altered =
            unsigned(&header, &staff) + "." + &self.signature_of(&header, &self.claims(&json!({ "sub": STRANGER })));
        let by_other = |header: &Json| signed_by(&self.other, header, &staff);
        let tag = |header: &Json, secret: &[u8]| {
            let message = unsigned(header, &staff);
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
        };
        let (point, shown) = (self.key.public_key().as_ref(), jwk(&self.key, &self.id).to_string());
        let shared_key = other_header(json!({ "alg": "HS256" }));
        let none = |name: &str| other_header(json!({ "alg": name }));
        let own_key = other_header(json!({ "jwk": jwk(&self.other, &self.id) }));
        vec![
            Token::new("a scheme without a token", Bearer::Refused, "Bearer".to_owned()),
            Token::new("another scheme", Bearer::Refused, format!("Basic {}", STANDARD.encode("staff:staff"))),
            Token::new("a good token under another scheme", Bearer::Refused, format!("Basic {good}")),
            bearer("three parts without content", "x.y.z"),
            bearer("two tokens", &format!("{good} {good}")),
            bearer("expired a second ago", &with(json!({ "exp": self.now - 1 }))),
            bearer("expired a day ago", &with(json!({ "iat": self.now - 2 * DAY, "exp": self.now - DAY }))),
            bearer("no `exp`", &without("exp")),
            bearer("`exp` is a text", &with(json!({ "exp": "9999999999" }))),
            bearer("`nbf` is in an hour", &with(json!({ "nbf": self.now + HOUR }))),
            bearer("`iat` is in an hour", &with(json!({ "iat": self.now + HOUR }))),
            bearer("another issuer", &with(json!({ "iss": "https://issuer.example" }))),
            bearer("an issuer with the same prefix", &with(json!({ "iss": format!("{ISSUER}.example") }))),
            bearer("no issuer", &without("iss")),
            bearer("another audience", &with(json!({ "aud": "another-shop" }))),
            bearer("no audience", &without("aud")),
            bearer("unsigned, `alg` is `none`", &(unsigned(&none("none"), &staff) + ".")),
            bearer("unsigned, `alg` is `nOnE`", &(unsigned(&none("nOnE"), &staff) + ".")),
            bearer("`alg` is `none`, with a signature", &format!("{}.{signature}", unsigned(&none("none"), &staff))),
            bearer("an empty signature", &format!("{message}.")),
            bearer("half its signature", &format!("{message}.{}", &signature[..signature.len() / 2])),
            bearer("a signature of zeros", &format!("{message}.{}", URL_SAFE_NO_PAD.encode([0; 64]))),
            bearer("the signature of other claims", &altered),
            bearer("signed by another key with this key's id", &by_other(&header)),
            bearer("signed by another key, which is in the header", &by_other(&own_key)),
            bearer("HS256 with the public key as secret", &tag(&shared_key, point)),
            bearer("HS256 with the published key as secret", &tag(&shared_key, shown.as_bytes())),
            bearer("HMAC with the public key, `alg` is ES256", &tag(&header, point)),
            bearer("a fourth part", &format!("{good}.{signature}")),
        ]
    }

    /// Returns tokens that the authorizer accepts and that name no customer.
    fn nameless(&self) -> Vec<Token> {
        let mut no_subject = self.staff();
        no_subject.as_object_mut().unwrap().remove("sub");
        let subject = |what, subject: String| {
            Token::new(what, Bearer::NoId, self.bearer(&self.claims(&json!({ "sub": subject }))))
        };
        vec![
            Token::new("no `sub`", Bearer::Nameless, self.bearer(&no_subject)),
            subject("`sub` is empty", String::new()),
            subject("`sub` has a control character", format!("{ANN}\u{0}")),
            subject("`sub` has 129 bytes", "x".repeat(129)),
            subject("`sub` has a slash", format!("idp/{ANN}")),
            subject("`sub` ends with a space", format!("{ANN} ")),
            subject("`sub` is percent-encoded", ANN.replace('-', "%2D")),
        ]
    }

    /// Returns tokens with a `sub` that resembles a customer's id.
    fn misnamed(&self) -> Vec<Token> {
        let token = |what, subject: Json| {
            let claims = json!({ "sub": subject, "cognito:groups": ["customers"] });
            Token::new(what, Bearer::Person(Person::Unregistered), self.bearer(&self.claims(&claims)))
        };
        vec![
            token("`sub` continues after the key delimiter", json!(format!("{ANN}#PROFILE"))),
            token("`sub` is the customer's partition key", json!(format!("CUSTOMER#{ANN}"))),
            token("`sub` is the customer's id in capitals", json!(ANN.to_uppercase())),
            token("`sub` is a list", json!([ANN])),
            token("`sub` is an object", json!({ "id": ANN })),
            token("`sub` is a number", json!(7)),
            token("`sub` is null", Json::Null),
            token("`sub` is the group's name in brackets", json!("[staff]")),
        ]
    }

    /// Returns a customer's tokens with a claim that resembles the staff claim, and staff tokens in
    /// every accepted spelling.
    fn grouped(&self) -> Vec<Token> {
        let token = |person, what, mut claims: Json| {
            claims["sub"] = STRANGER.into();
            let claims = self.sign(&self.header(), &merged(self.plain(), &claims));
            Token::new(what, Bearer::Person(person), format!("Bearer {claims}"))
        };
        let groups = |what, groups: Json| token(Person::Stranger, what, json!({ "cognito:groups": groups }));
        let claim = |what, claims: Json| token(Person::Stranger, what, claims);
        let staff = |what, claims: Json| token(Person::Staff, what, claims);
        vec![
            groups("the groups are a number", json!(7)),
            groups("the groups are true", json!(true)),
            groups("the groups are null", Json::Null),
            groups("the groups are an object", json!({ "staff": true })),
            groups("the groups are an object with a list", json!({ "groups": ["staff"] })),
            groups("a list in a list", json!([["staff"]])),
            groups("a group in brackets", json!(["[staff]"])),
            groups("only the opening bracket", json!("[staff")),
            groups("only the closing bracket", json!("staff]")),
            groups("`Staff`", json!(["Staff"])),
            groups("groups whose names contain `staff`", json!(["nonstaff", "staffing", "not-staff", "staff-x"])),
            groups("a group with a comma", json!(["staff,x"])),
            claim("the claim `group`", json!({ "group": "staff" })),
            claim("the claim `roles`", json!({ "roles": ["staff"], "role": "staff" })),
            claim("the claim `custom:groups`", json!({ "custom:groups": "staff", "Cognito:Groups": ["staff"] })),
            claim("the claims `staff` and `scope`", json!({ "staff": true, "is_staff": true, "scope": "staff" })),
            claim("`groups` beside Cognito's claim", json!({ "cognito:groups": ["customers"], "groups": ["staff"] })),
            staff("a list of groups", json!({ "cognito:groups": ["other", "staff"] })),
            staff("one group, as a text", json!({ "cognito:groups": "staff" })),
            staff("a list, as the gateway writes it", json!({ "cognito:groups": "[staff]" })),
            staff("the claim `groups` of other issuers", json!({ "groups": ["staff"] })),
        ]
    }

    /// Returns a validly signed token with these claims.
    pub fn bearer(&self, claims: &Json) -> String {
        format!("Bearer {}", self.sign(&self.header(), claims))
    }

    fn header(&self) -> Json {
        json!({ "alg": "ES256", "kid": self.id, "typ": "JWT" })
    }

    /// Returns the claims that every token needs, without a user id.
    fn plain(&self) -> Json {
        json!({ "iss": ISSUER, "aud": AUDIENCE, "iat": self.now - 60, "exp": self.now + DAY })
    }

    fn staff(&self) -> Json {
        merged(self.plain(), &json!({ "sub": "staff", "cognito:groups": ["staff"] }))
    }

    fn claims(&self, changes: &Json) -> Json {
        merged(self.staff(), changes)
    }

    fn sign(&self, header: &Json, claims: &Json) -> String {
        signed_by(&self.key, header, claims)
    }

    fn signature_of(&self, header: &Json, claims: &Json) -> String {
        self.sign(header, claims).rsplit_once('.').unwrap().1.to_owned()
    }
}

impl Token {
    fn new(what: &'static str, bearer: Bearer, header: String) -> Self {
        Self { what, bearer, header }
    }
}

fn merged(mut claims: Json, changes: &Json) -> Json {
    claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    claims
}

fn unsigned(header: &Json, claims: &Json) -> String {
    let part = |value: &Json| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn signed_by(key: &EcdsaKeyPair, header: &Json, claims: &Json) -> String {
    let message = unsigned(header, claims);
    let signature = key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn jwk(key: &EcdsaKeyPair, id: &str) -> Json {
    // The public key is an uncompressed point: a type byte and two coordinates.
    let (x, y) = key.public_key().as_ref().split_at(1).1.split_at(32);
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id, "x": part(x), "y": part(y) })
}

fn fresh_key() -> Vec<u8> {
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    made.as_ref().to_vec()
}

fn pair(pkcs8: &[u8]) -> EcdsaKeyPair {
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &SystemRandom::new()).unwrap()
}
