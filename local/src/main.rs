//! Runs `bodega`: the local system, its tokens and its functions.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::cli::main()
}
