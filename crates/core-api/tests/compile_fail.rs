//! Every "does not compile" of this crate's documentation: one file per claim in `compile-fail/`, named as the claim,
//! with what the compiler says beside it.
//!
//! The texts are those of the toolchain that the project is checked with. Another one may word them differently; then
//! `TRYBUILD=overwrite cargo test -p consign-core-api --test compile_fail` writes them anew, and each difference has to
//! be read: a case must fail for the reason in its name and for no other.

#[test]
fn no_case_compiles_and_each_fails_for_the_reason_in_its_name() {
    trybuild::TestCases::new().compile_fail("tests/compile-fail/*.rs");
}
