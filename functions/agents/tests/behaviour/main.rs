//! Tests of the function through its routes, over a table that is created from the template. Tests
//! of the whole system are in `tests` and `bench`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod access;
mod acp;
mod carts;
mod catalog;
mod checkouts;
mod notices;
mod profiles;
mod purchases;
mod routes;
mod shop;

use std::process::Command;

#[test]
fn a_program_without_a_required_variable_names_it_and_fails() {
    for (set, missing) in [(&[][..], "TABLE_NAME"), (&[("TABLE_NAME", "shop")], "CURSOR_KEYS_SECRET")] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_agents"));
        let output = program.env_clear().envs(set.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(missing), "{}: {said}", output.status);
    }
}
