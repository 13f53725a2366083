use std::process::ExitCode;

fn main() -> ExitCode {
    ops::cli::main()
}
