//! The program under test: `bodega`, built for this package, because cargo gives the path of a
//! program only to the tests of the program's package.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::cli::main()
}
