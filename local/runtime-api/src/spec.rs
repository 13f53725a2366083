use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Variables of this process that a function inherits: for diagnostics, and for finding programs
/// and libraries. A function gets no other variables of this process. So it cannot depend on the
/// developer's AWS settings or on variables that Lambda does not set.
const INHERITED: [&str; 5] = ["PATH", "RUST_BACKTRACE", "LLVM_PROFILE_FILE", "SystemRoot", "LD_LIBRARY_PATH"];

#[derive(Debug, Clone)]
pub struct FunctionSpec {
    pub name: String,
    /// Program that runs in an execution environment.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The function's environment variables. They override the variables that Lambda sets.
    pub environment: BTreeMap<String, String>,
    /// Value of `_HANDLER`.
    pub handler: String,
    pub timeout: Duration,
    /// Memory in MiB, as reported to the function. The limit is not enforced.
    pub memory_mb: u32,
    /// Maximum number of concurrent execution environments, at least 1.
    pub max_environments: usize,
    pub region: String,
    pub account: String,
}

impl FunctionSpec {
    pub(crate) fn arn(&self) -> String {
        format!("arn:aws:lambda:{}:{}:function:{}", self.region, self.account, self.name)
    }

    /// Returns all variables of an environment's process, as listed in
    /// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>.
    pub(crate) fn variables(&self, runtime_api: &str, stream: &str) -> BTreeMap<String, OsString> {
        let mut variables = BTreeMap::new();
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                variables.insert(name.to_owned(), value);
            }
        }
        let memory = self.memory_mb.to_string();
        let group = format!("/aws/lambda/{}", self.name);
        for (name, value) in [
            ("AWS_LAMBDA_RUNTIME_API", runtime_api),
            ("AWS_LAMBDA_FUNCTION_NAME", &self.name),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", &memory),
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
            ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", &group),
            ("AWS_LAMBDA_LOG_STREAM_NAME", stream),
            ("AWS_REGION", &self.region),
            ("AWS_DEFAULT_REGION", &self.region),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("_HANDLER", &self.handler),
            ("TZ", ":UTC"),
        ] {
            variables.insert(name.to_owned(), value.into());
        }
        for (name, value) in &self.environment {
            variables.insert(name.clone(), value.into());
        }
        variables
    }
}
