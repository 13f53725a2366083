//! `ops`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ops::cli::main()
}
