//! What a deployment decides and the template leaves open.

use std::collections::BTreeMap;

/// Values that the template does not fix: where it is deployed, with which parameters, and what the
/// created resources are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// What `AWS::Region` stands for.
    pub region: String,
    /// What `AWS::AccountId` stands for.
    pub account: String,
    /// Values of parameters. One that is not here has its default.
    pub parameters: BTreeMap<String, String>,
    /// Physical name by logical id: what `!Ref` of a resource gives. One that is not here is called
    /// by its logical id.
    pub names: BTreeMap<String, String>,
    /// Whether a parameter with neither value nor default reads as `${Name}` instead of being refused.
    pub(crate) inspection: bool,
}

impl Deployment {
    /// A deployment to `region` of `account` with every default.
    #[must_use]
    pub fn new(region: &str, account: &str) -> Self {
        Self {
            region: region.to_owned(),
            account: account.to_owned(),
            parameters: BTreeMap::new(),
            names: BTreeMap::new(),
            inspection: false,
        }
    }

    /// Gives a parameter a value.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// Says what a resource is called.
    #[must_use]
    pub fn name(mut self, logical_id: &str, name: impl Into<String>) -> Self {
        self.names.insert(logical_id.to_owned(), name.into());
        self
    }

    pub(crate) fn for_inspection() -> Self {
        Self { inspection: true, ..Self::new("us-east-1", "000000000000") }
    }
}
