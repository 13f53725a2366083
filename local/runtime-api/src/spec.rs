//! What a function is, and the environment variables that Lambda gives its process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Variables of this process that reach a function: where to find programs and where diagnostics go.
/// Nothing else does, so that a function neither sees the developer's own AWS settings nor comes to
/// depend on what Lambda does not give it.
const INHERITED: [&str; 5] = ["PATH", "RUST_BACKTRACE", "LLVM_PROFILE_FILE", "SystemRoot", "LD_LIBRARY_PATH"];

/// A function and how to run it.
#[derive(Debug, Clone)]
pub struct FunctionSpec {
    /// Its name, by which it is invoked.
    pub name: String,
    /// The program of an execution environment.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The function's own environment variables. They win over what Lambda sets.
    pub environment: BTreeMap<String, String>,
    /// What `_HANDLER` says.
    pub handler: String,
    /// Longest that one invocation may take.
    pub timeout: Duration,
    /// Memory in MiB, as the function is told. It is not enforced.
    pub memory_mb: u32,
    /// Most execution environments at once, at least 1.
    pub max_environments: usize,
    /// Region that the function is told.
    pub region: String,
    /// Account that its ARN names.
    pub account: String,
}

impl FunctionSpec {
    pub(crate) fn arn(&self) -> String {
        format!("arn:aws:lambda:{}:{}:function:{}", self.region, self.account, self.name)
    }

    /// Everything that the process of an environment finds set, as
    /// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html> lists it.
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
