//! Functions for comparison, and the folder from which the local system runs them.
//!
//! A peer is a Lambda function: a program that uses the Runtime API, with routes and permissions in
//! a template. So the system starts from a copy of the template that also contains the peers. One
//! folder has all programs: those of Bodega's functions, and a script for each peer.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use local::Options;
use template::Template;

use super::routes::{Route, Server};
use crate::BenchError;

#[derive(Debug, Clone)]
pub struct Peer {
    /// Node.js or Python.
    pub server: Server,
    /// The interpreter and its library, with their versions.
    version: String,
    command: Vec<PathBuf>,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)
    }
}

/// Returns the peers that this machine can run. For each missing peer, prints the reason on
/// standard error.
#[must_use]
pub fn available() -> Vec<Peer> {
    let mut peers = Vec::new();
    for (name, found) in [("Node.js", node()), ("Python", python())] {
        match found {
            Ok(peer) => peers.push(peer),
            Err(why) => eprintln!("bench: the measurement has no {name}: {why}"),
        }
    }
    peers
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

fn node() -> Result<Peer, String> {
    const VERSIONS: &str = "process.execPath + '\\nNode.js ' + process.version + ', AWS SDK ' + \
        require('@aws-sdk/client-dynamodb/package.json').version";
    let folder = folder("node");
    let said = said(Command::new("node").args(["-p", VERSIONS]).current_dir(&folder));
    let hint = |why| format!("{why}. Run `npm ci` in {}", folder.display());
    Peer::new(Server::Node, &said.map_err(hint)?, folder.join("bootstrap.mjs"))
}

fn python() -> Result<Peer, String> {
    const VERSIONS: &str = "import boto3, platform, sys; print(sys.executable, f'Python {platform.python_version()}, \
        boto3 {boto3.__version__}', sep='\\n')";
    let folder = folder("python");
    let said = said(Command::new("python3").args(["-c", VERSIONS]));
    let hint = |why| format!("{why}. Run `pip install -r {}`", folder.join("requirements.txt").display());
    Peer::new(Server::Python, &said.map_err(hint)?, folder.join("bootstrap.py"))
}

/// If the command fails, the error is the first line of its standard error that contains `Error`.
fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.lines().find(|line| line.contains("Error")).unwrap_or("the command failed").trim().to_owned())
}

impl Peer {
    /// Parses two lines: the interpreter, and the versions.
    fn new(server: Server, said: &str, program: PathBuf) -> Result<Self, String> {
        match said.lines().collect::<Vec<_>>()[..] {
            [interpreter, version] => {
                let command = vec![PathBuf::from(interpreter), program];
                Ok(Self { server, version: version.to_owned(), command })
            }
            _ => Err(format!("unexpected output {said:?}")),
        }
    }
}

/// A folder with the template and the programs of a system. Dropping the value removes the folder.
pub struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    pub fn set(options: &Options, peers: &[Peer]) -> Result<Self, BenchError> {
        let stage = Self { folder: tempfile::tempdir()? };
        let path = crate::template_file(options);
        let template = Template::read(&path)?;
        let text = fs::read_to_string(&path)?;
        fs::write(stage.template(), extended(&text, peers.iter().map(|peer| peer.server))?)?;
        fs::create_dir(stage.bootstraps())?;
        // Functions of one crate share one program.
        let crates: BTreeSet<&str> = template.functions.iter().map(template::Function::crate_name).collect();
        for name in crates {
            let program = stage.bootstraps().join(name);
            match &options.bootstraps {
                Some(folder) => symlink(
                    fs::canonicalize(folder.join(name)).map_err(|error| absent(folder, name, &error))?,
                    program,
                )?,
                None => script(&program, &[&options.program], " function \"$AWS_LAMBDA_FUNCTION_NAME\"")?,
            }
        }
        for peer in peers {
            let command: Vec<&Path> = peer.command.iter().map(PathBuf::as_path).collect();
            script(&stage.bootstraps().join(code(peer.server)), &command, "")?;
        }
        Ok(stage)
    }

    #[must_use]
    pub fn template(&self) -> PathBuf {
        self.folder.path().join("template.yaml")
    }

    #[must_use]
    pub fn bootstraps(&self) -> PathBuf {
        self.folder.path().join("bootstraps")
    }
}

fn absent(folder: &Path, name: &str, error: &std::io::Error) -> BenchError {
    wrong!("{}: {error}", folder.join(name).display())
}

/// Writes a script that replaces its shell by the command, so that the command's parent is not a
/// shell.
fn script(path: &Path, command: &[impl AsRef<Path>], rest: &str) -> Result<(), BenchError> {
    let quoted = |part: &Path| format!("'{}'", part.display().to_string().replace('\'', r"'\''"));
    let parts: Vec<String> = command.iter().map(|part| quoted(part.as_ref())).collect();
    fs::write(path, format!("#!/bin/sh\nexec {}{rest}\n", parts.join(" ")))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

const fn code(server: Server) -> &'static str {
    match server {
        Server::Bodega => "",
        Server::Node => "node",
        Server::Python => "python",
    }
}

fn extended(template: &str, peers: impl Iterator<Item = Server>) -> Result<String, BenchError> {
    let (before, after) =
        template.split_once("\nResources:\n").ok_or_else(|| wrong!("the template has no line `Resources:`"))?;
    let added: String = peers.map(resource).collect();
    Ok(format!("{before}\nResources:\n{added}{after}"))
}

/// Returns the peer's template resource, with only the permissions that its three routes need.
fn resource(server: Server) -> String {
    let (id, code, prefix) = (Route::Product.function(server), code(server), server.prefix());
    // Without this variable every process prints how long its SDK supports this Node.js version.
    let quiet = if server == Server::Node { ", AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true'" } else { "" };
    format!(
        "  {id}:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: bench/peers/{code}
      Timeout: 60
      Environment: {{Variables: {{TABLE_NAME: !Ref Table{quiet}}}}}
      Policies:
        - Statement:
            - Effect: Allow
              Action:
                - dynamodb:BatchGetItem
                - dynamodb:ConditionCheckItem
                - dynamodb:GetItem
                - dynamodb:PutItem
                - dynamodb:Query
                - dynamodb:UpdateItem
              Resource: !GetAtt Table.Arn
      Events:
        ReadProduct:
          Type: HttpApi
          Properties: {{ApiId: !Ref HttpApi, Method: GET, Path: '{prefix}/products/{{id}}', Auth: {{Authorizer: NONE}}}}
        PlaceOrder: {{Type: HttpApi, Properties: {{ApiId: !Ref HttpApi, Method: POST, Path: {prefix}/orders}}}}
        ListOrders:
          Type: HttpApi
          Properties: {{ApiId: !Ref HttpApi, Method: GET, Path: '{prefix}/customers/{{id}}/orders'}}

"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_template_with_peers_has_the_routes_of_the_template_and_of_the_peers() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        let options =
            Options { template: Some(path.clone()), bootstraps: None, ..Options::from_environment("/bin/true".into()) };
        let peer = |server, name: &str| Peer::new(server, &format!("/usr/bin/{name}\n{name} 1"), name.into()).unwrap();
        let peers = [peer(Server::Node, "node"), peer(Server::Python, "it's")];
        let stage = Stage::set(&options, &peers).unwrap();
        let (with, without) = (Template::read(&stage.template()).unwrap(), Template::read(&path).unwrap());
        assert_eq!(with.functions.len(), without.functions.len() + 2);
        let added: Vec<String> =
            with.routes.iter().filter(|route| !without.routes.contains(route)).map(ToString::to_string).collect();
        for server in [Server::Node, Server::Python] {
            let function = with.function(Route::Product.function(server)).unwrap();
            assert!(stage.bootstraps().join(function.crate_name()).is_file());
            for route in ["GET /v1/products/{id}", "POST /v1/orders", "GET /v1/customers/{id}/orders"] {
                assert!(added.contains(&route.replace("/v1", server.prefix())), "{added:?}");
            }
        }
        assert_eq!(added.len(), 6);
        for function in &without.functions {
            assert!(stage.bootstraps().join(function.crate_name()).is_file(), "{}", function.logical_id);
        }
        let script = fs::read_to_string(stage.bootstraps().join("python")).unwrap();
        assert_eq!(script, "#!/bin/sh\nexec '/usr/bin/it'\\''s' 'it'\\''s'\n");
    }

    #[test]
    fn a_missing_interpreter_or_library_is_reported_in_one_line() {
        assert!(said(&mut Command::new("/no/such/interpreter")).is_err());
        let failed = said(Command::new("sh").args(["-c", "echo 'trace'; echo 'ImportError: no boto3' >&2; exit 1"]));
        assert_eq!(failed.unwrap_err(), "ImportError: no boto3");
        assert!(Peer::new(Server::Node, "one line", "x".into()).is_err());
    }
}
