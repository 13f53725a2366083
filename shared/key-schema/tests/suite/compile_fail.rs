//! What must not compile: a change that would leave an index key stale, and an id of one kind where another belongs.

#[test]
fn what_would_leave_a_key_stale_or_mix_ids_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
