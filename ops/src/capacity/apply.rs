use std::collections::BTreeMap;

use aws::{Api, Call, Method, Service};

use crate::cost::stack::parameter_names;
use crate::error::OpsError;

const WHAT: &str = "CloudFormation";
const MAX_RESPONSE: usize = 1 << 20;

#[derive(Debug)]
pub struct Stack {
    service: Service,
    name: String,
}

impl Stack {
    pub fn from_env(name: &str) -> Result<Self, OpsError> {
        Ok(Self { service: Service::from_env(Api::CloudFormation)?, name: name.to_owned() })
    }

    /// Starts an update with the same template, these parameters, and the present values of all
    /// other parameters.
    ///
    /// A repeated call with the same parameters changes nothing, so the client may retry after a
    /// lost response.
    ///
    /// # Errors
    /// [`OpsError`], for example if the deployed template does not have the parameters yet.
    pub async fn update(&self, parameters: &BTreeMap<&'static str, String>) -> Result<(), OpsError> {
        let body = self.form(parameters)?;
        let headers = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        let call =
            Call { headers: &headers, body: body.into(), max_response: MAX_RESPONSE, ..Call::new(Method::POST, "/") };
        let unreachable = |reason: String| OpsError::Unreachable { what: WHAT, reason };
        let response = self.service.call(&call, |response| response.status >= 500).await;
        let response = response.map_err(|error| unreachable(error.to_string()))?;
        match response.status {
            200 => Ok(()),
            status if status >= 500 => Err(unreachable(format!("status {status}"))),
            _ => {
                let text = String::from_utf8_lossy(&response.body);
                let message = text.split_once("<Message>").and_then(|(_, rest)| rest.split_once("</Message>"));
                let message = message.map_or("CloudFormation gave no reason", |(message, _)| message);
                Err(OpsError::Failed(format!("the stack was not updated: {message}")))
            }
        }
    }

    /// Returns the body of `UpdateStack` in CloudFormation's form protocol.
    fn form(&self, parameters: &BTreeMap<&'static str, String>) -> Result<String, OpsError> {
        let mut pairs: Vec<(String, String)> = [
            ("Action", "UpdateStack"),
            ("Version", "2010-05-15"),
            ("StackName", &self.name),
            ("UsePreviousTemplate", "true"),
            ("Capabilities.member.1", "CAPABILITY_IAM"),
            ("Capabilities.member.2", "CAPABILITY_AUTO_EXPAND"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        for (number, name) in (1..).zip(parameter_names()?) {
            let member = format!("Parameters.member.{number}");
            let (field, value) = match parameters.get(name.as_str()) {
                Some(value) => ("ParameterValue", value.clone()),
                None => ("UsePreviousValue", "true".to_owned()),
            };
            pairs.push((format!("{member}.ParameterKey"), name));
            pairs.push((format!("{member}.{field}"), value));
        }
        let url = reqwest::Url::parse_with_params("http://localhost/", &pairs).map_err(OpsError::failed)?;
        Ok(url.query().unwrap_or_default().to_owned())
    }
}
