use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::TemplateError;
use crate::section::Section;

/// An `AWS::Serverless::Function`, with the template's globals applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub logical_id: String,
    pub arn: String,
    /// Folder of the function's crate, relative to the template.
    pub code_uri: String,
    /// Value of `_HANDLER`.
    pub handler: String,
    pub timeout: Duration,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Environment variables with their resolved values.
    pub environment: BTreeMap<String, String>,
    /// Names of the variables that have a literal value, which is the same in every deployment.
    pub literals: BTreeSet<String>,
    /// Tracing mode, e.g. `Active`. `None` means Lambda's default.
    pub tracing: Option<String>,
    pub asynchronous: Asynchronous,
    /// Permissions of the function's role. They do not include the permissions that SAM adds for
    /// logs, traces and the destination of failed events.
    pub statements: Vec<Statement>,
}

/// Settings of asynchronous invocation, with Lambda's defaults if the template has no
/// `EventInvokeConfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asynchronous {
    pub maximum_retries: u32,
    /// Age at which an event is given up.
    pub maximum_age: Duration,
    pub on_failure: Option<Destination>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// `S3`, `SQS` or `SNS`.
    pub kind: String,
    pub arn: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Name of the statement, if it has one.
    pub sid: Option<String>,
    /// Whether the statement allows the actions. Otherwise it denies them.
    pub allow: bool,
    /// Actions, e.g. `dynamodb:Query`.
    pub actions: Vec<String>,
    /// ARNs that the actions apply to.
    pub resources: Vec<String>,
}

impl Function {
    /// Returns the name of the function's crate: the last part of [`Function::code_uri`].
    #[must_use]
    pub fn crate_name(&self) -> &str {
        self.code_uri.trim_end_matches('/').rsplit('/').next().unwrap_or(&self.code_uri)
    }

    /// Returns whether an `Allow` statement names exactly this action, and a resource that ends in
    /// `resource_suffix`, e.g. `index/GSI1`.
    #[must_use]
    pub fn may(&self, action: &str, resource_suffix: &str) -> bool {
        self.statements.iter().any(|statement| {
            statement.allow
                && statement.actions.iter().any(|allowed| allowed == action)
                && statement.resources.iter().any(|resource| resource.ends_with(resource_suffix))
        })
    }
}

pub(crate) fn read(
    id: &str,
    arn: String,
    properties: &Section,
    globals: Option<&Section>,
) -> Result<Function, TemplateError> {
    let setting = |key: &str| -> Result<Option<Section>, TemplateError> {
        match (properties.get(key)?, globals) {
            (Some(own), _) => Ok(Some(own)),
            (None, Some(globals)) => globals.get(key),
            (None, None) => Ok(None),
        }
    };
    let required =
        |key: &str| setting(key)?.ok_or_else(|| properties.error(format!("{key} is missing, here and in Globals")));

    let (mut environment, mut literals) = (BTreeMap::new(), BTreeSet::new());
    for holder in globals.into_iter().chain([properties]) {
        if let Some(section) = holder.get("Environment")?
            && let Some(variables) = section.get("Variables")?
        {
            for (name, value) in variables.entries()? {
                if variables.is_literal(&name) {
                    literals.insert(name.clone());
                } else {
                    // A function's value replaces the global value, even if the global value is a
                    // literal.
                    literals.remove(&name);
                }
                environment.insert(name, value.text()?);
            }
        }
    }
    let tracing = setting("Tracing")?.map(|mode| mode.text()).transpose()?;
    let statements = match properties.get("Policies")? {
        Some(policies) => read_policies(&policies)?,
        None => Vec::new(),
    };
    Ok(Function {
        logical_id: id.to_owned(),
        arn,
        code_uri: required("CodeUri")?.text()?,
        handler: required("Handler")?.text()?,
        timeout: Duration::from_secs(required("Timeout")?.number::<u64>(1..=900)?),
        memory_mb: required("MemorySize")?.number::<u32>(128..=10_240)?,
        environment,
        literals,
        tracing,
        asynchronous: read_asynchronous(properties)?,
        statements,
    })
}

fn read_policies(policies: &Section) -> Result<Vec<Statement>, TemplateError> {
    let mut statements = Vec::new();
    for policy in policies.items()? {
        policy.only(&["Version", "Statement"])?;
        for section in policy.require("Statement")?.items()? {
            section.only(&["Sid", "Effect", "Action", "Resource"])?;
            let effect = section.require("Effect")?;
            let allow = match effect.text()?.as_str() {
                "Allow" => true,
                "Deny" => false,
                other => {
                    return Err(effect.error(format!("must be Allow or Deny, not {other}")));
                }
            };
            statements.push(Statement {
                sid: section.get("Sid")?.map(|sid| sid.text()).transpose()?,
                allow,
                actions: section.require("Action")?.texts()?,
                resources: section.require("Resource")?.texts()?,
            });
        }
    }
    Ok(statements)
}

fn read_asynchronous(properties: &Section) -> Result<Asynchronous, TemplateError> {
    let mut settings = Asynchronous { maximum_retries: 2, maximum_age: Duration::from_secs(21_600), on_failure: None };
    let Some(config) = properties.get("EventInvokeConfig")? else {
        return Ok(settings);
    };
    config.only(&["MaximumRetryAttempts", "MaximumEventAgeInSeconds", "DestinationConfig"])?;
    if let Some(retries) = config.get("MaximumRetryAttempts")? {
        settings.maximum_retries = retries.number::<u32>(0..=2)?;
    }
    if let Some(age) = config.get("MaximumEventAgeInSeconds")? {
        settings.maximum_age = Duration::from_secs(age.number::<u64>(60..=21_600)?);
    }
    settings.on_failure = read_destination(&config)?;
    Ok(settings)
}

fn read_destination(settings: &Section) -> Result<Option<Destination>, TemplateError> {
    let Some(config) = settings.get("DestinationConfig")? else {
        return Ok(None);
    };
    let target = config.require("OnFailure")?;
    let kind = target.require("Type")?;
    let name = kind.text()?;
    if !["S3", "SQS", "SNS"].contains(&name.as_str()) {
        return Err(kind.error(format!("{name} is no destination of failed events")));
    }
    Ok(Some(Destination { kind: name, arn: target.require("Destination")?.text()? }))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorizer {
    pub name: String,
    /// The `iss` of accepted tokens.
    pub issuer: String,
    /// Accepted values of `aud`, or of `client_id` in a token without `aud`.
    pub audience: Vec<String>,
}

pub(crate) fn read_authorizers(api: &Section) -> Result<Vec<Authorizer>, TemplateError> {
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
