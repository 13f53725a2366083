//! Tests of the deployed program's start.

use std::process::Command;

#[test]
fn a_program_without_a_required_variable_names_it_and_fails() {
    for (set, missing) in [(&[][..], "TABLE_NAME"), (&[("TABLE_NAME", "shop")], "CURSOR_KEYS")] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_orders"));
        let output = program.env_clear().envs(set.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(missing), "{}: {said}", output.status);
    }
}
