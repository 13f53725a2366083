use std::fmt;

/// The number of names that the output shows for one kind of difference.
const NAMED: usize = 5;

/// The differences, one text for each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences(Vec<String>);

impl Differences {
    pub(crate) fn add(&mut self, what: &str, names: impl IntoIterator<Item = String>) {
        let names: Vec<String> = names.into_iter().collect();
        if !names.is_empty() {
            let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
            self.0.push(format!("{what}: {} ({})", names.len(), shown.join(", ")));
        }
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("equal");
        }
        self.0.iter().try_for_each(|difference| write!(f, "\n  DIFFERENT: {difference}"))
    }
}
