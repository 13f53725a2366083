use std::collections::BTreeMap;

use runtime_api::FunctionSpec;
use template::{Deployment, Template, TemplateError};

use super::StartError;
use crate::Options;
use crate::backends::{ACCOUNT, Backends};
use crate::control::issuer_endpoint;
use crate::crash::CrashPoints;
use crate::dynamodb::REGION;
use crate::grants::Grants;

/// Adds to an error's message that the error is in the template of this program.
pub(super) fn in_program(error: TemplateError) -> TemplateError {
    error.in_file("the program's template.yaml".as_ref())
}

pub(super) fn deployment(options: &Options, backends: &Backends) -> Result<Deployment, StartError> {
    let mut deployment = backends.deployment();
    for (name, value) in &options.parameters {
        if deployment.parameters.insert(name.clone(), value.clone()).is_some() {
            return Err(StartError::Parameter(name.clone()));
        }
    }
    Ok(deployment)
}

pub(super) fn specs(
    template: &Template,
    options: &Options,
    backends: &Backends,
    grants: &Grants,
    crash_points: &CrashPoints,
) -> Vec<FunctionSpec> {
    let spec = |function: &template::Function| {
        let mut environment = function.environment.clone();
        environment.extend(backends.sdk_variables());
        environment.extend(grants.variables(&function.logical_id));
        environment.extend([crash_points.variable(&function.logical_id)]);
        let (program, args) = match &options.bootstraps {
            Some(folder) => (folder.join(function.crate_name()), Vec::new()),
            None => {
                let args = vec!["function".into(), function.logical_id.clone().into()];
                (options.program.clone(), args)
            }
        };
        FunctionSpec {
            name: function.logical_id.clone(),
            program,
            args,
            environment,
            handler: function.handler.clone(),
            timeout: function.timeout,
            memory_mb: function.memory_mb,
            max_environments: options.environments.max(1),
            region: REGION.to_owned(),
            account: ACCOUNT.to_owned(),
        }
    };
    template.functions.iter().map(spec).collect()
}

/// Returns the environment variables with which other programs can call the backends: the variables
/// of the AWS SDK, and some of the functions' own variables.
pub(super) fn environment(template: &Template, backends: &Backends, url: &str) -> BTreeMap<String, String> {
    const WANTED: [&str; 15] = [
        "TABLE_NAME",
        "METRICS_TABLES",
        "SEARCH_ENDPOINT",
        "SEARCH_SERVICE",
        "SEARCH_INDEX_PREFIX",
        "BUS_NAME",
        "ARCHIVE_BUCKET",
        "FAILED_RECORDS_BUCKET",
        "MEDIA_BUCKET",
        "CURSOR_KEYS_SECRET",
        "EMAIL_CODE_KEYS_SECRET",
        "PAYMENT_KEYS_SECRET",
        "PAYMENT_PROVIDER_URL",
        "WEBHOOK_KEYS_SECRET",
        "WEBHOOK_TARGETS",
    ];
    let mut environment = backends.sdk_variables();
    environment.insert("JWT_ISSUER_ENDPOINT".to_owned(), issuer_endpoint(url));
    for authorizer in &template.authorizers {
        environment.insert("JWT_ISSUER".to_owned(), authorizer.issuer.clone());
        environment.insert("JWT_AUDIENCE".to_owned(), authorizer.audience.join(","));
    }
    for (name, value) in template.functions.iter().flat_map(|function| &function.environment) {
        if WANTED.contains(&name.as_str()) {
            environment.insert(name.clone(), value.clone());
        }
    }
    environment
}
