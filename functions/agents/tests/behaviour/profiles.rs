//! Tests of the profiles of agents, and of signatures.

use aws::Reach;
use fixture::receiver::Receiver;
use http_api::sample::{Answered, Call};
use key_schema::instant::Instant;
use key_schema::webhook_secret::WebhookKeys;
use serde_json::{Value, json};
use signatures::{Jwk, Signature, Signed, SigningKeys, content_digest, has_digest};

use crate::shop::{
    Agent, COMPLETE, CREATE, READ, Shop, codes, on_host, payment, refused, registration, shipping, wanted, with,
};

const VERSION: &str = "2026-08-25";
const APRIL: &str = "2026-04-08";
const SHOPPING: [&str; 6] = ["checkout", "cart", "discount", "order", "catalog.lookup", "catalog.search"];
const KEYS: &str = "new:BgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgY=,old:BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU=";

/// An agent whose profile the test serves.
pub struct Platform {
    pub receiver: Receiver,
    pub profile_url: String,
    pub agent: Agent,
    keys: SigningKeys,
}

impl Platform {
    /// Registers the agent `robot`, whose profile has all capabilities.
    pub async fn register(shop: &Shop) -> Self {
        let receiver = Receiver::start().await;
        let profile_url = receiver.url.replace("/hook?shop=1", "/profile");
        let body = with(registration("robot"), &json!({ "profile_url": profile_url }));
        let agent = shop.agent_with("robot", &body).await;
        let keys = SigningKeys::of(&WebhookKeys::new(KEYS).unwrap());
        let platform = Self { receiver, profile_url, agent, keys };
        platform.describe(VERSION, &SHOPPING, &platform.keys.public());
        platform
    }

    /// Serves a profile. Orders go to the receiver.
    pub fn describe(&self, version: &str, capabilities: &[&str], keys: &[Jwk]) {
        self.describe_at(&self.receiver.url, version, capabilities, keys);
    }

    pub fn describe_at(&self, url: &str, version: &str, capabilities: &[&str], keys: &[Jwk]) {
        let capability = |name: &&str| (format!("dev.ucp.shopping.{name}"), json!([{ "version": version }]));
        let mut known: serde_json::Map<String, Value> = capabilities.iter().map(capability).collect();
        if let Some(order) = known.get_mut("dev.ucp.shopping.order") {
            order[0]["config"] = json!({ "webhook_url": url });
        }
        let mut profile = json!({ "ucp": { "version": version, "capabilities": known } });
        profile[if version == APRIL { "signing_keys" } else { "keys" }] = json!(keys);
        self.receiver.serve(profile.to_string());
    }

    pub fn keys(&self) -> Vec<Jwk> {
        self.keys.public()
    }

    fn named(&self, route: &'static str) -> Call {
        on_host(route).header("ucp-agent", &format!("profile=\"{}\"", self.profile_url))
    }

    pub fn keyed(&self, route: &'static str) -> Call {
        self.named(route).header("x-api-key", &self.agent.key)
    }

    /// Builds a signed request with this body. `change` changes what is signed.
    fn signed(&self, body: &Value, change: impl FnOnce(&mut Vec<(&'static str, String)>)) -> Call {
        let text = body.to_string();
        let agent = format!("profile=\"{}\"", self.profile_url);
        let mut components = vec![
            ("@method", "POST".to_owned()),
            ("@authority", "api.example".to_owned()),
            ("@path", "/ucp/checkout-sessions".to_owned()),
            ("ucp-agent", agent),
            ("idempotency-key", "0f6b8a52".to_owned()),
            ("content-digest", content_digest(text.as_bytes())),
            ("content-type", "application/json".to_owned()),
        ];
        change(&mut components);
        let lines: Vec<(&str, &str)> = components.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let Signed { input, signature } = self.keys.sign(&lines, Instant::now().as_seconds()).unwrap();
        let digest = content_digest(text.as_bytes());
        self.named(CREATE)
            .header("idempotency-key", "0f6b8a52")
            .header("content-digest", &digest)
            .header("signature-input", &input)
            .header("signature", &signature)
            .json(body)
    }
}

async fn shop() -> (Shop, Platform) {
    let shop = Shop::reaching(Reach::Any).await;
    let platform = Platform::register(&shop).await;
    (shop, platform)
}

#[tokio::test]
async fn a_signature_proves_a_registered_agent_without_a_key() {
    let (shop, platform) = shop().await;
    let body = wanted(&[("tea", 1)]);
    let answer = shop.send(platform.signed(&body, |_| {})).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let both = platform.signed(&body, |_| {}).header("x-api-key", &platform.agent.key);
    assert_eq!(shop.expect(201, both).await["id"], answer.body["id"], "the key of the request is the same");

    let nobody = "profile=\"http://127.0.0.1:9/other\"";
    let answer = shop.send(platform.signed(&body, |_| {}).header("ucp-agent", nobody)).await;
    assert_eq!(refused(&answer), (403, "profile_not_trusted"));
    shop.ok(Call::new("DELETE /v1/agents/{id}").path("id", "robot").staff("sam")).await;
    let answer = shop.send(platform.signed(&body, |_| {})).await;
    assert_eq!(refused(&answer), (403, "profile_not_trusted"), "a removed agent is refused at once");
}

#[tokio::test]
async fn a_request_whose_signature_is_not_of_it_is_refused_even_with_a_key() {
    let (shop, platform) = shop().await;
    let body = wanted(&[("tea", 1)]);
    let set = |wanted: &'static str, value: &'static str| {
        move |components: &mut Vec<(&'static str, String)>| {
            for (name, known) in components {
                if *name == wanted {
                    value.clone_into(known);
                }
            }
        }
    };
    let without = |wanted: &'static str| {
        move |components: &mut Vec<(&'static str, String)>| components.retain(|(name, _)| *name != wanted)
    };
    let invalid = (401, "signature_invalid");
    let mut calls = vec![
        (platform.signed(&body, set("@method", "PUT")), invalid),
        (platform.signed(&body, set("@authority", "other.example")), invalid),
        (platform.signed(&body, set("@path", "/ucp/carts")), invalid),
        (platform.signed(&body, set("idempotency-key", "another")), invalid),
        (platform.signed(&body, |_| {}).json(&wanted(&[("tea", 9)])), (400, "digest_mismatch")),
        (platform.signed(&body, |_| {}).header("content-digest", ""), (400, "digest_mismatch")),
        (platform.signed(&body, |_| {}).header("signature", "sig1=:AAAA:"), invalid),
        (platform.signed(&body, |_| {}).header("signature", "nonsense ="), invalid),
    ];
    for component in
        ["@method", "@authority", "@path", "ucp-agent", "idempotency-key", "content-digest", "content-type"]
    {
        calls.push((platform.signed(&body, without(component)), invalid));
    }
    for (number, (call, refusal)) in calls.into_iter().enumerate() {
        for call in [call.clone(), call.header("x-api-key", &platform.agent.key)] {
            let answer = shop.send(call).await;
            assert_eq!(refused(&answer), refusal, "{number}: {}", answer.body);
        }
    }
    // One of the two headers is missing.
    let half = |name: &str, value: &str| platform.named(CREATE).header(name, value).json(&body);
    for call in [half("signature", "sig1=:AAAA:"), half("signature-input", "sig1=();keyid=\"new\"")] {
        assert_eq!(refused(&shop.send(call).await), (401, "signature_missing"));
    }
    assert!(shop.items("CHECKOUT#").await.is_empty(), "nothing was created");
}

#[tokio::test]
async fn a_key_is_one_of_the_profile_and_of_a_known_curve() {
    let (shop, platform) = shop().await;
    let body = wanted(&[("tea", 1)]);
    let send = || shop.send(platform.signed(&body, |_| {}));
    let ([new, old], mut other) = (<[Jwk; 2]>::try_from(platform.keys()).unwrap(), platform.keys().remove(0));
    other.crv = Some("P-384".to_owned());
    for (keys, refusal) in [
        (vec![old.clone()], (401, "key_not_found")),
        (vec![other], (400, "algorithm_unsupported")),
        (vec![Jwk { kid: new.kid.clone(), ..old.clone() }], (401, "signature_invalid")),
    ] {
        let shop = Shop::reaching(Reach::Any).await;
        shop.agent_with("robot", &with(registration("robot"), &json!({ "profile_url": platform.profile_url }))).await;
        platform.describe(VERSION, &SHOPPING, &keys);
        let answer = shop.send(platform.signed(&body, |_| {})).await;
        assert_eq!(refused(&answer), refusal, "{}", answer.body);
    }
    platform.describe(VERSION, &SHOPPING, &[old.clone(), new.clone()]);
    assert_eq!(send().await.status, 201);
    // Each version has its own list of keys, and a key that was removed from it is void.
    for (version, keys, status) in [(APRIL, "signing_keys", 201), (APRIL, "keys", 401), (VERSION, "signing_keys", 401)]
    {
        let shop = Shop::reaching(Reach::Any).await;
        shop.agent_with("robot", &with(registration("robot"), &json!({ "profile_url": platform.profile_url }))).await;
        let capabilities = json!({ "dev.ucp.shopping.checkout": [{ "version": version }] });
        let mut profile = json!({ "ucp": { "version": version, "capabilities": capabilities } });
        profile[keys] = json!([new.clone()]);
        platform.receiver.serve(profile.to_string());
        assert_eq!(shop.send(platform.signed(&body, |_| {})).await.status, status, "{version} {keys}");
    }
    // A signature does not say which of the agents with a profile it is.
    shop.agent_with("other", &with(registration("other"), &json!({ "profile_url": platform.profile_url }))).await;
    assert_eq!(refused(&send().await), (403, "profile_not_trusted"));
}

#[tokio::test]
async fn a_profile_that_nobody_can_read_stops_only_agents_without_a_key() {
    let (shop, platform) = shop().await;
    platform.receiver.serve("<html>");
    let body = wanted(&[("tea", 1)]);
    let malformed = shop.send(platform.keyed(CREATE).json(&body)).await;
    assert_eq!(refused(&malformed), (422, "profile_malformed"), "{}", malformed.body);
    // Nothing listens at the port.
    let shop = Shop::reaching(Reach::Any).await;
    let gone = with(registration("robot"), &json!({ "profile_url": "http://127.0.0.1:1/profile" }));
    let gone = Platform {
        receiver: Receiver::start().await,
        profile_url: "http://127.0.0.1:1/profile".to_owned(),
        agent: shop.agent_with("robot", &gone).await,
        keys: SigningKeys::of(&WebhookKeys::new(KEYS).unwrap()),
    };
    let answer = shop.send(gone.signed(&body, |_| {})).await;
    assert_eq!(refused(&answer), (424, "profile_unreachable"), "{}", answer.body);
    shop.expect(201, gone.keyed(CREATE).json(&body)).await;
}

#[tokio::test]
async fn an_agent_gets_the_capabilities_that_it_has_in_common_with_the_shop() {
    let (shop, platform) = shop().await;
    let body = wanted(&[("tea", 1)]);
    let known = |answer: &Value| -> Vec<String> {
        answer["ucp"]["capabilities"].as_object().unwrap().keys().cloned().collect()
    };
    let session = shop.expect(201, platform.keyed(CREATE).json(&body)).await;
    assert_eq!(known(&session), ["dev.ucp.shopping.checkout", "dev.ucp.shopping.discount"]);

    let open = async |version: &str, capabilities: &[&str]| {
        let shop = Shop::reaching(Reach::Any).await;
        platform.describe(version, capabilities, &[]);
        let body = with(registration("robot"), &json!({ "profile_url": platform.profile_url }));
        let agent = shop.agent_with("robot", &body).await;
        let call = |route| platform.named(route).header("x-api-key", &agent.key);
        let checkout = shop.send(call(CREATE).json(&wanted(&[("tea", 1)]))).await;
        let cart = shop.send(call("POST /ucp/carts").json(&wanted(&[("tea", 1)]))).await;
        (checkout, cart)
    };
    let (checkout, cart) = open(VERSION, &["checkout"]).await;
    assert_eq!((checkout.status, known(&checkout.body)), (201, vec!["dev.ucp.shopping.checkout".to_owned()]));
    assert_eq!((cart.status, codes(&cart.body)), (200, vec!["capabilities_incompatible"]), "{}", cart.body);
    assert_eq!((&cart.body["ucp"]["status"], cart.body.get("id")), (&json!("error"), None));
    for answer in <[Answered; 2]>::from(open("2026-01-11", &["checkout", "cart"]).await) {
        assert_eq!(refused(&answer), (422, "version_unsupported"), "{}", answer.body);
    }
}

#[tokio::test]
async fn an_agent_is_answered_in_the_version_that_it_speaks() {
    let latest = Shop::open().await.ready().await;
    assert_eq!(latest["ucp"]["version"], VERSION, "the shop does not know the version of this agent");
    for version in [APRIL, VERSION] {
        let shop = Shop::reaching(Reach::Any).await;
        let platform = Platform::register(&shop).await;
        platform.describe(version, &["checkout"], &[]);
        let session = shop.expect(201, platform.keyed(CREATE).json(&wanted(&[("tea", 1)]))).await;
        let cart = shop.expect(200, platform.keyed("POST /ucp/carts").json(&wanted(&[("tea", 1)]))).await;
        for answer in [&session, &cart] {
            assert_eq!(answer["ucp"]["version"], version, "{answer}");
        }
        assert_eq!(session["ucp"]["capabilities"]["dev.ucp.shopping.checkout"], json!([{ "version": version }]));
        // A capability of another version is none.
        let other = if version == APRIL { VERSION } else { APRIL };
        let capabilities = json!({ "dev.ucp.shopping.checkout": [{ "version": other }] });
        let shop = Shop::reaching(Reach::Any).await;
        let body = with(registration("robot"), &json!({ "profile_url": platform.profile_url }));
        let agent = shop.agent_with("robot", &body).await;
        let profile = json!({ "ucp": { "version": version, "capabilities": capabilities } });
        platform.receiver.serve(profile.to_string());
        let call = platform.named(CREATE).header("x-api-key", &agent.key).json(&wanted(&[("tea", 1)]));
        assert_eq!(codes(&shop.expect(200, call).await), ["capabilities_incompatible"]);
    }
}

#[tokio::test]
async fn the_shop_has_a_profile_for_each_version() {
    let shop = Shop::open().await;
    let latest = shop.expect(200, on_host("GET /.well-known/ucp")).await;
    let url = format!("https://api.example/.well-known/ucp/{APRIL}");
    assert_eq!(latest["ucp"]["supported_versions"], json!({ APRIL: url }));
    let april = shop.expect(200, on_host("GET /.well-known/ucp/2026-04-08")).await;
    let keys = &april["signing_keys"];
    assert_eq!((&latest["keys"], &latest["signing_keys"]), (keys, keys), "an agent of April may read the latest");
    assert_eq!((april.get("keys"), april["ucp"].get("supported_versions")), (None, None));
    for (version, profile) in [(VERSION, &latest), (APRIL, &april)] {
        let ucp = &profile["ucp"];
        assert_eq!(ucp["version"], version);
        let capabilities = ucp["capabilities"].as_object().unwrap().values();
        for entry in capabilities.chain(ucp["services"].as_object().unwrap().values()) {
            let entry = &entry[0];
            assert_eq!(entry["version"], version);
            for page in ["spec", "schema"] {
                assert!(entry[page].as_str().unwrap().starts_with(&format!("https://ucp.dev/{version}/")), "{entry}");
            }
        }
    }
    let spec = |profile: &Value| profile["ucp"]["capabilities"]["dev.ucp.shopping.order"][0]["spec"].clone();
    assert_eq!(spec(&latest), "https://ucp.dev/2026-08-25/specification/shopping/order");
    assert_eq!(spec(&april), "https://ucp.dev/2026-04-08/specification/order");
}

#[tokio::test]
async fn a_purchase_has_one_instrument_unless_the_agent_speaks_the_version_of_april() {
    for (version, status) in [(APRIL, "completed"), (VERSION, "ready_for_complete")] {
        let shop = Shop::reaching(Reach::Any).await;
        let platform = Platform::register(&shop).await;
        platform.describe(version, &SHOPPING, &[]);
        let session = shop.expect(201, platform.keyed(CREATE).json(&wanted(&[("tea", 1)]))).await;
        let mut payment = payment("pm_card_visa");
        let instruments = payment["payment"]["instruments"].as_array_mut().unwrap();
        instruments.insert(0, json!({ "id": "other", "handler_id": "stripe" }));
        let complete = platform.keyed(COMPLETE).path("id", session["id"].as_str().unwrap()).json(&payment);
        let answer = shop.expect(200, complete).await;
        let said: &[&str] = if version == APRIL { &[] } else { &["payment_failed"] };
        assert_eq!((&answer["status"], codes(&answer)), (&json!(status), said.to_vec()), "{version}: {answer}");
    }
}

#[tokio::test]
async fn a_way_to_send_the_goods_has_the_description_of_the_version() {
    for version in [APRIL, VERSION] {
        let shop = Shop::reaching(Reach::Any).await;
        shop.ship().await;
        let platform = Platform::register(&shop).await;
        platform.describe(version, &[&SHOPPING[..], &["fulfillment"]].concat(), &[]);
        let body = with(wanted(&[("tea", 1)]), &shipping("CH", None));
        let session = shop.expect(201, platform.keyed(CREATE).json(&body)).await;
        let option = &session["fulfillment"]["methods"][0]["groups"][0]["options"][0];
        let text = "Arrives in 2 to 4 days";
        assert_eq!(option["description"], if version == APRIL { json!(text) } else { json!({ "plain": text }) });
    }
}

#[tokio::test]
async fn a_signature_for_web_bot_auth_covers_the_header_that_names_its_key() {
    let (shop, platform) = shop().await;
    let body = wanted(&[("tea", 1)]);
    let agent = r#"sig1="https://agent.example";type=jwks_uri"#;
    let without = platform.signed(&body, |_| {}).header("signature-agent", agent);
    assert_eq!(refused(&shop.send(without).await), (401, "signature_invalid"));
    let add = |components: &mut Vec<(&'static str, String)>| components.push(("signature-agent", agent.to_owned()));
    shop.expect(201, platform.signed(&body, add).header("signature-agent", agent)).await;
    // One valid signature is enough, whatever the others are.
    let signed = |call: Call, name: &str| call.event()["headers"][name].as_str().unwrap().to_owned();
    let other = platform.signed(&body, |components| components.retain(|(name, _)| *name != "@path"));
    let mut call = platform.signed(&body, |_| {});
    for name in ["signature-input", "signature"] {
        let both = format!("{}, {}", signed(other.clone(), name).replace("sig1=", "a="), signed(call.clone(), name));
        call = call.header(name, &both);
    }
    shop.expect(201, call).await;
}

#[tokio::test]
async fn every_response_is_signed_with_a_key_of_the_shops_profile() {
    let shop = Shop::open().await;
    let profile = shop.expect(200, on_host("GET /.well-known/ucp")).await;
    let keys: Vec<Jwk> = serde_json::from_value(profile["keys"].clone()).unwrap();
    assert_eq!(keys.len(), 1);
    let created = shop.acme.call(CREATE).header("idempotency-key", "k").json(&wanted(&[("tea", 1)]));
    let id = shop.expect(201, created.clone()).await["id"].as_str().unwrap().to_owned();
    for call in [
        created,
        shop.acme.call(READ).path("id", &id),
        shop.acme.call(READ).path("id", "none"),
        shop.acme.call("POST /ucp/catalog/lookup").json(&json!({ "ids": ["tea"] })),
    ] {
        let raw = shop.routes.answer_text(&shop.app, &call.event().to_string()).await.unwrap();
        let raw: Value = serde_json::from_str(&raw).unwrap();
        let header = |name: &str| raw["headers"][name].as_str().map(str::to_owned);
        let body = raw["body"].as_str().unwrap();
        assert!(has_digest(&header("content-digest").unwrap(), body.as_bytes()));
        let signature = Signature::read(header("signature-input").as_deref(), header("signature").as_deref());
        let signature = signature.unwrap().remove(0);
        assert!(["@status", "content-digest", "content-type"].iter().all(|component| signature.covers(component)));
        let status = raw["statusCode"].to_string();
        let check = |status: &str| {
            let value = |name: &str| if name == "@status" { Some(status.to_owned()) } else { header(name) };
            signature.check(&keys, Instant::now().as_seconds(), value)
        };
        assert_eq!(check(&status), Ok(()));
        assert!(check("500").is_err());
    }
}
