use crate::TemplateError;
use crate::section::Section;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorizer {
    pub name: String,
    /// The `iss` of accepted tokens.
    pub issuer: String,
    /// Accepted values of `aud`, or of `client_id` in a token without `aud`.
    pub audience: Vec<String>,
}

pub(crate) fn read(api: &Section) -> Result<Vec<Authorizer>, TemplateError> {
    let Some(auth) = api.get("Auth")? else { return Ok(Vec::new()) };
    let Some(all) = auth.get("Authorizers")? else { return Ok(Vec::new()) };
    let one = |(name, authorizer): (String, Section)| {
        authorizer.only(&["IdentitySource", "JwtConfiguration"])?;
        let settings = authorizer.require("JwtConfiguration")?;
        settings.only(&["issuer", "audience"])?;
        let (issuer, audience) = (settings.require("issuer")?.text()?, settings.require("audience")?.texts()?);
        Ok(Authorizer { name, issuer, audience })
    };
    all.entries()?.into_iter().map(one).collect()
}
