//! Who an agent is: its API key or a signature proves it, and the header `UCP-Agent` names its profile.

use aws::Target;
use http_api::{Code, Problem, Request};
use key_schema::agent::{self, Agent, AgentKey, AgentScope};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use sfv::{BareItem, Dictionary, ListEntry, Parser};
use signatures::{Jwk, Refusal, Signature, has_digest};

use crate::App;
use crate::pages::Pages;
use crate::profiles::NoProfile;
use crate::ucp;

const KEY: &str = "x-api-key";
const PROFILE: &str = "ucp-agent";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const DIGEST: &str = "content-digest";
/// Where readers of Web Bot Auth find the key. This shop finds it in the profile.
const SIGNATURE_AGENT: &str = "signature-agent";

/// Returns the agent that sends a request.
///
/// A request with a key may have a signature, too. Both must be valid then.
///
/// # Errors
/// 401 without the key of a registered agent and without its signature, 400 `invalid_profile_url`, 403
/// `profile_not_trusted` for the profile of another agent, 403 `forbidden` without the scope, and the
/// protocol's errors of signatures and profiles.
pub async fn agent(app: &App, request: &Request<'_>, scope: AgentScope) -> Result<Stored<Agent>, Problem> {
    let signatures = Signature::read(request.header("signature-input"), request.header("signature"));
    let is_signed = !matches!(&signatures, Ok(none) if none.is_empty());
    let agent = match request.secret(KEY) {
        Some(key) => keyed(app, request, &AgentKey::given(key)).await?,
        None if !is_signed => return Err(unknown()),
        None => registered(app, request).await?,
    };
    let profile = app.profiles.read(&agent.profile_url).await;
    if is_signed {
        let signatures = signatures.map_err(refused)?;
        let keys = &profile.as_ref().map_err(|error| no_profile(*error))?.keys;
        match check(app, request, &signatures, keys).await? {
            // The agent may have a new key.
            Err(Refusal::UnknownKey) => {
                let renewed = app.profiles.renew(&agent.profile_url).await.map_err(no_profile)?;
                check(app, request, &signatures, &renewed.keys).await?
            }
            checked => checked,
        }
        .map_err(refused)?;
    }
    match profile {
        Ok(profile) => ucp::negotiate(&profile, request)?,
        // Staff have registered the agent, so it is served without a profile that nobody can read.
        Err(NoProfile::Unreachable | NoProfile::Absent) => {}
        Err(error) => return Err(no_profile(error)),
    }
    if !agent.scopes.contains(&scope) {
        return Err(Problem::new(Code::Forbidden, format!("This agent has no scope `{scope}`.")));
    }
    Ok(agent)
}

fn unknown() -> Problem {
    Problem::new(Code::Unauthenticated, "This request needs the API key or the signature of a registered agent.")
}

async fn keyed(app: &App, request: &Request<'_>, key: &AgentKey) -> Result<Stored<Agent>, Problem> {
    let id = key.agent().ok_or_else(unknown)?;
    let found = app.shop.services.table.get(&agent::get(&id)?).await?;
    let agent = found.filter(|agent| agent.opens(key)).ok_or_else(unknown)?;
    if named(app, request)? != agent.profile_url {
        return Err(not_trusted());
    }
    Ok(agent)
}

/// Finds the agent that the profile of a request names. Its signature must prove it.
async fn registered(app: &App, request: &Request<'_>) -> Result<Stored<Agent>, Problem> {
    let profile = named(app, request)?;
    let agents = app.shop.services.table.query(&agent::signers()?).await?.items;
    let mut named = agents.into_iter().filter(|agent| agent.profile_url == profile);
    match (named.next(), named.next()) {
        (Some(agent), None) => Ok(agent),
        // Agents with the same profile have the same keys, so only API keys tell them apart.
        _ => Err(not_trusted()),
    }
}

fn not_trusted() -> Problem {
    let detail = "This profile is not the one that the shop knows of this agent.";
    Problem::new(Code::Forbidden, detail).spoken("profile_not_trusted")
}

fn named(app: &App, request: &Request<'_>) -> Result<String, Problem> {
    profile_of(app, request).ok_or_else(|| {
        let detail = "The header UCP-Agent must have the https URL of the agent's profile.";
        Problem::new(Code::InvalidHeader, detail).spoken("invalid_profile_url")
    })
}

/// Returns the URL of the profile that a request names.
pub fn profile_of(app: &App, request: &Request<'_>) -> Option<String> {
    profile_url(request.header(PROFILE)?).filter(|url| Target::new(url, app.profiles.reach()).is_ok())
}

/// Reads the profile's URL from a dictionary of structured fields (RFC 8941).
fn profile_url(header: &str) -> Option<String> {
    let dictionary = Parser::new(header).parse::<Dictionary>().ok()?;
    let Some(ListEntry::Item(item)) = dictionary.get("profile") else { return None };
    let BareItem::String(url) = &item.bare_item else { return None };
    Some(url.as_str().to_owned())
}

/// Checks that one of the signatures of a request is valid, and covers all that the protocol wants.
async fn check(
    app: &App,
    request: &Request<'_>,
    signatures: &[Signature],
    keys: &[Jwk],
) -> Result<Result<(), Refusal>, Problem> {
    // Behind a proxy, the agent has signed the address that it knows.
    let api = Pages::read(app, request).await?.api;
    let hosts = [request.header("host").map(str::to_owned), api.split('/').nth(2).map(str::to_owned)];
    let mut refusal = Refusal::Missing("Host");
    for signature in signatures {
        for host in hosts.iter().flatten() {
            match check_at(request, signature, keys, host) {
                Ok(()) => return Ok(Ok(())),
                // A key that is not known yet is the reason to read the profile again.
                Err(_) if refusal == Refusal::UnknownKey => {}
                Err(refused) => refusal = refused,
            }
        }
    }
    Ok(Err(refusal))
}

fn check_at(request: &Request<'_>, signature: &Signature, keys: &[Jwk], host: &str) -> Result<(), Refusal> {
    let (method, path) = request.target();
    let body = request.body_text().ok_or(Refusal::Digest)?;
    let mut needed = vec!["@method", "@authority", "@path", PROFILE];
    if method != "GET" {
        needed.push(IDEMPOTENCY_KEY);
    }
    if !body.is_empty() {
        needed.extend([DIGEST, "content-type"]);
    }
    if request.has_query() {
        needed.push("@query");
    }
    let is_for_bots = request.header(SIGNATURE_AGENT).is_some();
    let is_covered = !is_for_bots || signature.covers_member(SIGNATURE_AGENT);
    if !is_covered || !needed.into_iter().all(|component| signature.covers(component)) {
        return Err(Refusal::Invalid("the signature does not cover all that it must"));
    }
    if !body.is_empty() && !request.header(DIGEST).is_some_and(|digest| has_digest(digest, body.as_bytes())) {
        return Err(Refusal::Digest);
    }
    let host = host.strip_suffix(":443").unwrap_or(host).to_ascii_lowercase();
    signature.check(keys, Instant::now().as_seconds(), |component| match component {
        "@method" => Some(method.to_owned()),
        "@authority" => Some(host.clone()),
        "@path" => Some(path.clone()),
        // No route for agents has a query.
        "@query" if !request.has_query() => Some("?".to_owned()),
        derived if derived.starts_with('@') => None,
        header => request.header(header).map(str::to_owned),
    })
}

fn refused(refusal: Refusal) -> Problem {
    let (code, spoken) = match refusal {
        Refusal::Missing(_) => (Code::Unauthenticated, "signature_missing"),
        Refusal::Invalid(_) => (Code::Unauthenticated, "signature_invalid"),
        Refusal::UnknownKey => (Code::Unauthenticated, "key_not_found"),
        Refusal::Digest => (Code::InvalidHeader, "digest_mismatch"),
        Refusal::Algorithm => (Code::InvalidHeader, "algorithm_unsupported"),
    };
    Problem::new(code, format!("The signature is refused: {refusal}.")).spoken(spoken)
}

fn no_profile(error: NoProfile) -> Problem {
    let (detail, spoken) = match error {
        NoProfile::Unreachable | NoProfile::Absent => {
            ("The profile of the agent cannot be read.", "profile_unreachable")
        }
        NoProfile::Malformed => ("The profile of the agent is not as the protocol wants it.", "profile_malformed"),
    };
    Problem::new(Code::InvalidHeader, detail).spoken(spoken)
}

#[cfg(test)]
mod tests {
    use super::profile_url;

    #[test]
    fn a_profile_is_a_quoted_text_in_a_dictionary() {
        let url = Some("https://a.example/p".to_owned());
        for good in [
            r#"profile="https://a.example/p""#,
            r#"x=1, profile="https://a.example/p"; version="2026-04-08""#,
            r#"profile="http://b.example", profile="https://a.example/p""#,
        ] {
            assert_eq!(profile_url(good), url, "{good}");
        }
        for bad in ["", "profile", "profile=https://a.example/p"] {
            assert_eq!(profile_url(bad), None, "{bad}");
        }
    }
}
