//! `bodega doctor`: checks whether the system can be built and started here.
//!
//! It changes nothing: a file that it writes to try a folder is removed at once.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use emulators::table::{self, Error};
use template::{Template, TemplateError};

use crate::token::SigningKey;
use crate::{Options, built_in};

/// What to check.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Port for the HTTP API.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    port: u16,
    /// Folder for the data.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Template of the system.
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
}

struct Check {
    subject: &'static str,
    /// What is there, or else what is wrong and what to do.
    found: Result<String, String>,
}

/// Prints one line for each check. The exit code says whether all of them have succeeded.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    let here = std::env::current_dir().unwrap_or_default();
    let mut checks = Vec::new();
    match checkout(&here) {
        Some(folder) => {
            checks.push(Check { subject: "compiler", found: compiler(folder) });
            if cfg!(unix) {
                checks.push(Check { subject: "linker", found: linker() });
            }
        }
        None => {
            let found = Ok("not needed, because this is no checkout of Bodega".to_owned());
            checks.push(Check { subject: "compiler", found });
        }
    }
    checks.push(Check { subject: "port", found: port(args.port) });
    checks.push(Check { subject: "data folder", found: data(args.data.as_deref()) });
    checks.push(Check { subject: "template", found: template(args.template.clone()) });

    let mut out = io::stdout().lock();
    for Check { subject, found } in &checks {
        let (outcome, text) = match found {
            Ok(text) => ("ok", text),
            Err(text) => ("failed", text),
        };
        // An error is ignored, because standard output may be a closed pipe.
        let _ = writeln!(out, "{outcome:<6}  {subject:<11}  {text}");
    }
    if checks.iter().all(|check| check.found.is_ok()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the nearest folder at or above `folder` that is a checkout of Bodega.
fn checkout(folder: &Path) -> Option<&Path> {
    const FILES: [&str; 2] = ["rust-toolchain.toml", "template.yaml"];
    folder.ancestors().find(|folder| FILES.iter().all(|name| folder.join(name).is_file()))
}

fn compiler(checkout: &Path) -> Result<String, String> {
    let file = std::fs::read_to_string(checkout.join("rust-toolchain.toml"));
    let file = file.map_err(|error| format!("cannot read rust-toolchain.toml: {error}"))?;
    let wanted = channel(&file).ok_or("rust-toolchain.toml names no channel; restore the file")?;
    // In this folder rustup selects the toolchain of the file. The check must not install it.
    let mut command = Command::new("rustc");
    command.arg("--version").current_dir(checkout).env("RUSTUP_AUTO_INSTALL", "0");
    let version = first_line(&mut command).map_err(|error| {
        format!("rustc {error}; install rustup from https://rustup.rs and run `rustup toolchain install {wanted}`")
    })?;
    let number = version.split(' ').nth(1).unwrap_or_default();
    if number == wanted {
        Ok(version)
    } else {
        Err(format!("{version} is not {wanted}; run `rustup toolchain install {wanted}`"))
    }
}

/// Returns the channel in the text of a rust-toolchain.toml.
fn channel(file: &str) -> Option<&str> {
    let value = file.lines().find_map(|line| line.trim().strip_prefix("channel")?.trim_start().strip_prefix('='))?;
    value.split('"').nth(1)
}

fn linker() -> Result<String, String> {
    first_line(Command::new("cc").arg("--version"))
        .map_err(|error| format!("cc {error}; install a C compiler, such as gcc or clang"))
}

/// Returns the first line that a program prints.
fn first_line(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot be started: {error}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("fails: {}", reason.lines().next().unwrap_or("it says nothing")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

fn port(port: u16) -> Result<String, String> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(format!("{port} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let user =
                user_of(port).map_or_else(|| "another program".to_owned(), |(pid, name)| format!("{name} ({pid})"));
            Err(format!("{port} is in use by {user}; stop it, or choose another port with --port"))
        }
        Err(error) => Err(format!("{port}: {error}; choose another port with --port")),
    }
}

/// Returns id and name of the process that listens on a port. Only Linux tells it, and only about the
/// processes of the same user.
fn user_of(port: u16) -> Option<(u32, String)> {
    const LISTENING: &str = "0A";
    let sockets = ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| std::fs::read_to_string(file).unwrap_or_default());
    let address = format!(":{port:04X}");
    let inode = sockets.iter().flat_map(|text| text.lines()).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(1)?.ends_with(&address) && *fields.get(3)? == LISTENING;
        listens.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
    })?;
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = ids.find(|pid| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|target| target == Path::new(&inode))
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some((pid, name.trim().to_owned()))
}

fn data(folder: Option<&Path>) -> Result<String, String> {
    let Some(folder) = folder else {
        let temporary = std::env::temp_dir();
        try_writing(&temporary).map_err(|error| {
            format!("cannot write to {}: {error}; set TMPDIR to another folder", temporary.display())
        })?;
        return Ok("none, so all data is lost at the end".to_owned());
    };
    let shown = folder.display();
    let Some(existing) = folder.ancestors().map(or_here).find(|folder| folder.exists()) else {
        return Err(format!("{shown} has no folder above it; choose another folder"));
    };
    if !existing.is_dir() {
        return Err(format!("{} is not a folder; choose another folder", existing.display()));
    }
    let advice = "change its permissions, or choose another folder";
    try_writing(existing).map_err(|error| format!("cannot write to {}: {error}; {advice}", existing.display()))?;
    if !folder.exists() {
        return Ok(format!("{shown} can be created"));
    }
    match table::look_at(folder) {
        Ok(true) => {}
        Ok(false) => return Ok(format!("{shown} is writable, and has no table yet")),
        Err(error @ Error::InUse(_)) => return Err(format!("{error}; stop it, or choose another folder")),
        Err(error) => return Err(format!("{error}; choose another folder")),
    }
    SigningKey::of_running(Some(folder)).map_err(|error| format!("{error}; choose another folder"))?;
    Ok(format!("{shown} has a table"))
}

/// Returns the current folder for the empty path.
fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

fn try_writing(folder: &Path) -> io::Result<()> {
    let file = folder.join(format!(".bodega-doctor-{:016x}", fastrand::u64(..)));
    File::create_new(&file)?;
    std::fs::remove_file(file)
}

fn template(file: Option<PathBuf>) -> Result<String, String> {
    let options = Options { template: file, ..Options::from_environment(PathBuf::new()) };
    let advice = |error: TemplateError| format!("{error}; correct the file, or choose another with --template");
    match options.template_file() {
        Some(file) => Template::read(&file).map(|_| file.display().to_string()).map_err(advice),
        None => Template::parse(built_in::TEMPLATE).map(|_| "built into the program".to_owned()).map_err(advice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channel_of_a_toolchain_file_is_read_with_and_without_blanks() {
        assert_eq!(channel("# channel\n[toolchain]\nchannel = \"1.2.3\"\n"), Some("1.2.3"));
        assert_eq!(channel("channel=\"nightly\""), Some("nightly"));
        assert_eq!(channel("[toolchain]"), None);
    }
}
