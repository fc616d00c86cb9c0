//! Every mutant of the embedded broker is noticed.

#[expect(unreachable_pub, reason = "the file is the same wherever the harness is used")]
mod support;

use consign_testkit::mutants;
use support::in_memory::{InMemoryHarness, profiles};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mutant_of_the_embedded_broker_is_noticed_by_some_case() {
    let report = mutants::run(InMemoryHarness::new, profiles()).await;
    println!("{report}");
    report.assert_all_caught();
}
