#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use super::*;

const NOW: i64 = 1_800_000_000;

fn fresh() -> SigningKey {
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    SigningKey::from_pkcs8(made.as_ref()).unwrap()
}

/// Returns a correctly signed token. `changes` replaces some of the default claims.
fn signed(key: &SigningKey, header: &str, changes: &Json) -> String {
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "c", "exp": NOW + 1});
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    key.sign(header, &claims).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let unique = format!("bodega-key-{name}-{}", std::process::id());
    std::env::temp_dir().join(unique)
}

#[test]
fn all_programs_of_a_build_find_the_same_target_folder() {
    for mark in ["CACHEDIR.TAG", ".rustc_info.json"] {
        let target = scratch(mark);
        fs::create_dir_all(&target).unwrap();
        fs::write(target.join(mark), []).unwrap();
        for program in ["debug/bodega", "debug/deps/suite-0", "aarch64-unknown-linux-gnu/release/bodega"] {
            assert_eq!(shared_folder(&target.join(program), Some("/home/ann".into())), target);
        }
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn a_downloaded_program_has_its_key_in_the_home_folder() {
    let folder = |home: Option<&str>| shared_folder(Path::new("/nowhere/bin/bodega"), home.map(PathBuf::from));
    assert_eq!(folder(Some("/home/ann")), Path::new("/home/ann/.bodega"));
    for none in [None, Some("")] {
        assert_eq!(folder(none), Path::new("/nowhere/bin"));
    }
}

#[test]
fn an_issued_token_passes_and_its_claims_are_text() {
    let key = fresh();
    let groups = ["staff".to_owned(), "other".to_owned()];
    let token = key.issue("customer #1", &groups, NOW).unwrap();
    let claims = key.verify(&token, NOW).unwrap();
    assert_eq!(claims["sub"], "customer #1");
    assert_eq!(claims["cognito:groups"], "[staff other]");
    assert_eq!(claims["iss"], ISSUER);
    assert_eq!(claims["exp"], (NOW + 43_200).to_string());
    assert!(!key.verify(&key.issue("c", &[], NOW).unwrap(), NOW).unwrap().contains_key("cognito:groups"));
}

#[test]
fn a_token_with_an_email_address_claims_that_the_address_is_verified() {
    let key = fresh();
    let token = key.issue_with("c", &[], MoreClaims { email: Some("ann@example.com"), sid: None }, NOW).unwrap();
    let claims = key.verify(&token, NOW).unwrap();
    assert_eq!((claims["email"].as_str(), claims["email_verified"].as_str()), ("ann@example.com", "true"));
    let claims = key.verify(&key.issue("c", &[], NOW).unwrap(), NOW).unwrap();
    assert!(!claims.contains_key("email") && !claims.contains_key("email_verified"));
}

#[test]
fn a_token_for_any_of_the_authorizers_audiences_passes() {
    let key = fresh().for_audience(vec!["app".to_owned(), "office".to_owned()]);
    let header = key.header.as_str();
    for aud in [json!("app"), json!("office"), json!(["x", "office"])] {
        assert!(key.verify(&signed(&key, header, &json!({"aud": aud})), NOW).is_some(), "{aud}");
    }
    assert!(key.verify(&signed(&key, header, &json!({"aud": AUDIENCE})), NOW).is_none());
}

#[test]
fn a_token_with_a_wrong_issuer_or_audience_or_time_or_signature_is_refused() {
    let key = fresh();
    let header = key.header.as_str();
    assert!(key.verify(&signed(&key, header, &json!({})), NOW).is_some());
    let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none", "kid": key.id, "typ": "JWT"}).to_string());
    let shared = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": key.id, "typ": "JWT"}).to_string());
    let by_public_key = |header: &str| {
        let message = signed(&key, header, &json!({})).rsplit_once('.').unwrap().0.to_owned();
        let secret = hmac::Key::new(hmac::HMAC_SHA256, key.pair.public_key().as_ref());
        let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&secret, message.as_bytes()));
        format!("{message}.{tag}")
    };
    for token in [
        signed(&key, header, &json!({"exp": NOW})),
        signed(&key, header, &json!({"exp": "9999999999"})),
        signed(&key, header, &json!({"exp": null})),
        signed(&key, header, &json!({"nbf": NOW + 1})),
        signed(&key, header, &json!({"nbf": "soon"})),
        signed(&key, header, &json!({"iat": NOW + 1})),
        signed(&key, header, &json!({"iss": "urn:other"})),
        signed(&key, header, &json!({"aud": "other"})),
        signed(&key, header, &json!({"aud": ["other"]})),
        signed(&key, header, &json!({"aud": "other", "client_id": AUDIENCE})),
        signed(&key, &none, &json!({})),
        signed(&key, &shared, &json!({})),
        by_public_key(header),
        by_public_key(&shared),
        signed(&fresh(), header, &json!({})),
        String::new(),
        "a.b.c".to_owned(),
        header.to_owned(),
    ] {
        assert!(key.verify(&token, NOW).is_none(), "{token}");
    }
}

#[test]
fn an_altered_token_is_refused() {
    let key = fresh();
    let token = key.issue("c", &[], NOW).unwrap();
    for at in 0..token.len() {
        let mut altered = token.clone().into_bytes();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        assert!(key.verify(&String::from_utf8(altered).unwrap(), NOW).is_none(), "{at}");
    }
}

#[test]
fn the_published_key_verifies_tokens_and_contains_no_private_key() {
    let key = fresh();
    let shown = key.key_set();
    let [shown] = shown["keys"].as_array().unwrap().as_slice() else { panic!("{shown}") };
    let names: Vec<&str> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
    let part = |name: &str| URL_SAFE_NO_PAD.decode(shown[name].as_str().unwrap()).unwrap();
    let point = [vec![4], part("x"), part("y")].concat();
    let token = key.issue("c", &[], NOW).unwrap();
    let (message, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message.as_bytes(), &signature).unwrap();
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    let header: Json = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["kid"], shown["kid"]);
}

#[test]
fn the_key_is_created_once_and_only_its_owner_can_read_it() {
    let folder = scratch("once");
    let first = SigningKey::open(Some(&folder)).unwrap();
    let second = SigningKey::open(Some(&folder)).unwrap();
    let token = first.issue("c", &[], NOW).unwrap();
    assert!(second.verify(&token, NOW).is_some());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(folder.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn processes_that_create_the_key_concurrently_get_the_same_key() {
    let folder = scratch("race");
    let open = || SigningKey::open(Some(&folder)).unwrap().derive("x");
    let keys: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_that_is_no_key_is_refused() {
    let folder = scratch("damaged");
    fs::create_dir_all(&folder).unwrap();
    for content in ["", "short"] {
        fs::write(folder.join(FILE), content).unwrap();
        assert!(matches!(SigningKey::open(Some(&folder)), Err(KeyError::Damaged(_))));
    }
    fs::remove_dir_all(&folder).unwrap();
}
