//! Code that must not compile: a change that leaves an index key stale, and an id of the wrong
//! type.

#[test]
fn what_would_leave_a_key_stale_or_mix_ids_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
