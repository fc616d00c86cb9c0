//! The contract suite of Consign: named cases, written once against the seam and the runtime, run on every adapter in
//! every profile.
//!
//! # For adapter authors
//! Implement [`Harness`] for your broker, register a [`Profile`] per configuration, and run:
//!
//! ```text
//! consign_testkit::contract(MyHarness::start().await)
//!     .profile(Profile::new("plain"))
//!     .profile(Profile::new("ordered").ordering(OrderingScope::Destination))
//!     .run().await
//!     .assert_passed();
//! ```
//! The capabilities that your transport declares decide which cases run and which refusals are asserted. Nothing is
//! skipped silently: every case of every profile is in the [`Report`], with its reason if it did not run.

pub mod audit;
pub mod case;
pub mod cases;
pub mod contract;
pub mod harness;
pub mod history;
pub mod lab;
pub mod mutants;
pub mod profile;
pub mod report;
pub mod wrap;

pub use case::{Case, CaseError, CaseResult, Need};
pub use contract::{Contract, contract};
pub use harness::{BrokerFault, FaultKind, Harness, NotOffered, Stored};
pub use lab::Lab;
pub use profile::Profile;
pub use report::{Entry, Report, Verdict};
