//! Values that a deployment chooses and the template leaves open.

use std::collections::BTreeMap;

/// Values that the template does not fix: region, account, parameters and physical names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Value of `AWS::Region`.
    pub region: String,
    /// Value of `AWS::AccountId`.
    pub account: String,
    /// Values of parameters. Others have their defaults.
    pub parameters: BTreeMap<String, String>,
    /// Physical names by logical id, as `!Ref` of a resource returns them. Other resources have
    /// their logical id as name.
    pub names: BTreeMap<String, String>,
    /// Whether a parameter without value and default reads as `${Name}`. Otherwise it is an error.
    pub(crate) inspection: bool,
}

impl Deployment {
    /// Creates a deployment to `region` of `account` with all defaults.
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

    /// Sets the value of a parameter.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the physical name of a resource.
    #[must_use]
    pub fn name(mut self, logical_id: &str, name: impl Into<String>) -> Self {
        self.names.insert(logical_id.to_owned(), name.into());
        self
    }

    pub(crate) fn for_inspection() -> Self {
        Self { inspection: true, ..Self::new("us-east-1", "000000000000") }
    }
}
