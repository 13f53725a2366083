//! The program under test, `bodega`. It is built for this package, because cargo gives the path of
//! a program only to the tests of the program's own package.

use std::process::ExitCode;

fn main() -> ExitCode {
    local::cli::main()
}
