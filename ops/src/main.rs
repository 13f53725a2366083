//! The `ops` program. Its code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ops::cli::main()
}
