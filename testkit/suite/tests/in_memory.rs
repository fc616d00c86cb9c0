//! The whole contract on the embedded broker.

#[expect(unreachable_pub, reason = "the file is the same wherever the harness is used")]
mod support;

use consign_testkit::contract;
use support::in_memory::{InMemoryHarness, profiles};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_broker_keeps_the_contract_in_every_profile() {
    let mut run = contract(InMemoryHarness::new()).parallel(8);
    for profile in profiles() {
        run = run.profile(profile);
    }
    if let Ok(part) = std::env::var("CONSIGN_CASE") {
        run = run.only(part);
    }
    let report = run.run().await;
    report.assert_passed();
}
