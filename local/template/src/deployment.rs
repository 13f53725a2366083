//! Values that the template does not fix and that each deployment chooses.

use std::collections::BTreeMap;

/// The region, account, parameters and physical names of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Value of `AWS::Region`.
    pub region: String,
    /// Value of `AWS::AccountId`.
    pub account: String,
    /// Values of parameters. Parameters that are not in the map have their defaults.
    pub parameters: BTreeMap<String, String>,
    /// Physical names by logical id, as `!Ref` returns them. A resource that is not in the map has
    /// its logical id as name.
    pub names: BTreeMap<String, String>,
    /// Whether a parameter that has neither a value nor a default becomes the text `${Name}`.
    /// If not, such a parameter is an error.
    pub(crate) inspection: bool,
}

impl Deployment {
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

    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn name(mut self, logical_id: &str, name: impl Into<String>) -> Self {
        self.names.insert(logical_id.to_owned(), name.into());
        self
    }

    pub(crate) fn for_inspection() -> Self {
        Self { inspection: true, ..Self::new("us-east-1", "000000000000") }
    }
}
