//! Code that must not compile: a change that leaves an index key stale, and an id of the wrong
//! type.

#[test]
fn a_stale_index_key_or_an_id_of_the_wrong_type_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
