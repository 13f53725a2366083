//! Tests that invalid usage is reported before any request is sent.

use std::process::Command;

/// Runs `ops` without any environment. Returns its exit status and standard error.
fn ops(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ops")).args(arguments).env_clear().output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_address_of_the_local_system_has_a_scheme() {
    for address in ["127.0.0.1:4110", "localhost:4110", "ftp://localhost", ""] {
        let (status, said) = ops(&["--local", address, "search", "status"]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("http://127.0.0.1:3000"), "{said}");
    }
    // No server listens at this address.
    assert_eq!(ops(&["--local", "http://127.0.0.1:1", "search", "status"]).0, Some(3));
}

#[test]
fn a_name_that_belongs_to_no_archived_item_is_refused() {
    for command in ["show", "restore"] {
        for name in ["", "quarantine/x.json"] {
            let (status, said) = ops(&["archive", command, name]);
            assert_eq!(status, Some(2), "{said}");
            assert!(said.contains("ops archive list"), "{said}");
        }
    }
}

#[test]
fn a_list_without_a_variable_number_of_shards_is_refused() {
    let (status, said) = ops(&["shards", "--index", "likes.likers", "--to", "8"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("customers.by-tier, orders.by-status, orders.log-of-day"), "{said}");
    for arguments in [["--index", "orders.by-status"], ["--to", "8"]] {
        assert_eq!(ops(&[&["shards"], &arguments[..]].concat()).0, Some(2));
    }
    for number in ["0", "65", "-4", "x"] {
        assert_eq!(ops(&["shards", "--index", "orders.by-status", "--to", number]).0, Some(2), "{number}");
    }
}

#[test]
fn a_migration_and_an_entity_that_do_not_exist_are_refused() {
    let (status, said) = ops(&["migrate", "run", "everything"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("ops migrate list"), "{said}");
    let (status, said) = ops(&["verify", "--entity", "Person"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("CustomerOrder"), "{said}");
    for arguments in [["migrate", "status", "--segments", "0"], ["verify", "--max-read-units", "0", "--fix"]] {
        assert_eq!(ops(&arguments).0, Some(2));
    }
}

#[test]
fn a_rotation_needs_the_parameter_of_the_template() {
    let (status, said) = ops(&["rotate"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("METRICS_TABLES must be one or monthly"), "{said}");
}
