//! How a function's program is linked, for all of them.

use std::env;

/// A function is deployed at a fixed address. A program that may lie anywhere has some 19,000 addresses in it that are corrected at every cold start: a twentieth of the
/// instructions until the first answer, and a part of what is downloaded. Stack, heap and libraries still lie where the kernel's chance puts them.
fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    let is = |name: &str, value: &str| env::var(name).as_deref() == Ok(value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
