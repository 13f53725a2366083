use std::collections::BTreeMap;
use std::sync::Arc;

use emulators::access::{Access, Report, Rule};
use emulators::search::SearchGate;
use template::{Function, Statement, Template};

use crate::backends::{ACCOUNT, Backends};
use crate::dynamodb::REGION;
use crate::mappings::MappingRole;
use crate::system::StartError;

const SEARCH_ENDPOINT: &str = "SEARCH_ENDPOINT";

/// The permissions of all functions, and a [`SearchGate`] for each function that uses the search
/// engine.
pub(crate) struct Grants {
    access: Arc<Access>,
    gates: BTreeMap<String, SearchGate>,
}

impl Grants {
    /// Makes every backend refuse calls that the template does not allow.
    pub(crate) async fn enforce(template: &Template, backends: &Backends) -> Result<Self, StartError> {
        let functions = template.functions.iter().map(|function| (function.logical_id.clone(), rules(function)));
        let access = Arc::new(Access::new(REGION, ACCOUNT, functions));
        for stream in &template.streams {
            MappingRole::of_stream(stream, &access).create()?;
        }
        for queue in &template.queue_mappings {
            MappingRole::of_queue(queue, &access).create()?;
        }
        backends.enforce(&access);
        let mut gates = BTreeMap::new();
        for function in template.functions.iter().filter(|function| function.environment.contains_key(SEARCH_ENDPOINT))
        {
            let (url, name) = (&backends.search_url, &function.logical_id);
            if url.starts_with("https:") {
                tracing::warn!(function = name, "the permissions for calls to an https search engine are not checked");
                continue;
            }
            let gate = SearchGate::start(url, &Backends::search_arn(), name, Arc::clone(&access)).await;
            gates.insert(name.clone(), gate.map_err(StartError::Endpoint)?);
        }
        Ok(Self { access, gates })
    }

    /// Returns the environment variables with which a function identifies itself to the backends.
    pub(crate) fn variables(&self, function: &str) -> impl Iterator<Item = (String, String)> {
        let gate = self.gates.get(function).map(|gate| (SEARCH_ENDPOINT.to_owned(), gate.url().to_owned()));
        [("AWS_SESSION_TOKEN".to_owned(), function.to_owned())].into_iter().chain(gate)
    }

    pub(crate) const fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Returns for each function its denied calls, and how often each of its permissions was used.
    pub(crate) fn report(&self) -> Vec<Report> {
        self.access.report()
    }
}

fn rules(function: &Function) -> Vec<Rule> {
    let rules = |statement: &Statement| {
        let pairs = statement.actions.iter().flat_map(|action| statement.resources.iter().map(move |on| (action, on)));
        let (sid, allow) = (&statement.sid, statement.allow);
        let rule = |(action, on): (&String, &String)| Rule {
            sid: sid.clone(),
            allow,
            action: action.clone(),
            resource: on.clone(),
        };
        pairs.map(rule).collect::<Vec<_>>()
    };
    function.statements.iter().flat_map(rules).collect()
}
