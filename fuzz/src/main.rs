#![no_main]

use std::sync::LazyLock;

/// The target that `BODEGA_FUZZ` names.
static CHECK: LazyLock<fuzz::Check> = LazyLock::new(|| {
    let name = std::env::var("BODEGA_FUZZ").unwrap_or_default();
    let target = fuzz::TARGETS.iter().find(|(target, _)| *target == name);
    target.unwrap_or_else(|| panic!("set BODEGA_FUZZ to the name of a target, not {name:?}")).1
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| CHECK(input));
