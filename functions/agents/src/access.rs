//! Who an agent is: the API key proves it, and the header `UCP-Agent` repeats it.

use http_api::{Code, Problem, Request};
use key_schema::agent::{self, Agent, AgentKey, AgentScope};
use key_schema::item::Stored;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::App;

const KEY: &str = "x-api-key";
const PROFILE: &str = "ucp-agent";

/// Returns the agent that sends a request.
///
/// # Errors
/// 401 without the key of a registered agent, 400 `invalid_profile_url`, 403 `profile_not_trusted` for the
/// profile of another agent, and 403 `forbidden` without the scope.
pub async fn agent(app: &App, request: &Request<'_>, scope: AgentScope) -> Result<Stored<Agent>, Problem> {
    let unknown = || Problem::new(Code::Unauthenticated, "This request needs the API key of a registered agent.");
    let key = AgentKey::given(request.secret(KEY).ok_or_else(unknown)?);
    let id = key.agent().ok_or_else(unknown)?;
    let found = app.shop.services.table.get(&agent::get(&id)?).await?;
    let agent = found.filter(|agent| agent.opens(&key)).ok_or_else(unknown)?;
    let profile = request.header(PROFILE).and_then(profile_url).ok_or_else(|| {
        let detail = "The header UCP-Agent must have the https URL of the agent's profile.";
        Problem::new(Code::InvalidHeader, detail).spoken("invalid_profile_url")
    })?;
    if profile != agent.profile_url {
        let detail = "This profile is not the one that the shop knows of this agent.";
        return Err(Problem::new(Code::Forbidden, detail).spoken("profile_not_trusted"));
    }
    if !agent.scopes.contains(&scope) {
        return Err(Problem::new(Code::Forbidden, format!("This agent has no scope `{scope}`.")));
    }
    Ok(agent)
}

/// Reads the profile's URL from a dictionary of structured fields (RFC 8941).
fn profile_url(header: &str) -> Option<String> {
    let dictionary = Parser::new(header).parse::<Dictionary>().ok()?;
    let Some(ListEntry::Item(item)) = dictionary.get("profile") else { return None };
    let BareItem::String(url) = &item.bare_item else { return None };
    Some(url.as_str().to_owned()).filter(|url| url.starts_with("https://"))
}

#[cfg(test)]
mod tests {
    use super::profile_url;

    #[test]
    fn a_profile_is_a_quoted_https_url_in_a_dictionary() {
        let url = Some("https://a.example/p".to_owned());
        for good in [
            r#"profile="https://a.example/p""#,
            r#"x=1, profile="https://a.example/p"; version="2026-04-08""#,
            r#"profile="http://b.example", profile="https://a.example/p""#,
        ] {
            assert_eq!(profile_url(good), url, "{good}");
        }
        for bad in ["", "profile", "profile=https://a.example/p", r#"profile="http://a.example/p""#, r#"profile=""#] {
            assert_eq!(profile_url(bad), None, "{bad}");
        }
    }
}
