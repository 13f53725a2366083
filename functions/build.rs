//! The build script of all Lambda functions. It links their programs at a fixed address, without the
//! index of the unwind tables.

use std::env;

/// Links a program at a fixed address. Otherwise the loader relocates some 19,000 addresses at
/// every cold start. That would cost 5% of the instructions before the first response, and would
/// enlarge the program. The kernel still randomizes stack, heap and libraries.
///
/// The index of the unwind tables would only serve backtraces, and a program without symbols has no
/// useful backtrace. A panic is still printed, and ends the program.
fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    let is = |name: &str, value: &str| env::var(name).as_deref() == Ok(value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    }
}
