//! What stands behind `cargo testkit <command>`: the checks of this workspace, and the brokers that tests need.
//!
//! The binary is thin; everything is here, so that other commands and tests can use it.
//!
//! | room | what it holds |
//! |---|---|
//! | [`cli`] | the commands and their options |
//! | [`adapters`] | which adapters are built in, and what to run for one that is not |
//! | [`audit`] | faults, and what was said held against what is there |
//! | [`brokers`] | starting, stopping, killing and freezing a broker |
//! | [`checks`] | `cargo testkit test`: the steps, in order |
//! | [`laws`] | dependencies, file sizes, rooms, `unsafe` |
//! | [`codes`] | the tables of error codes, and their page |
//! | [`contract`], [`harness`] | the contract suite on real brokers |
//! | [`demo`] | an example as a story |
//! | [`instructions`] | what a message costs |
//! | [`workspace`] | where things are |
//! | [`tools`] | installing what a fresh machine lacks |
//! | [`proxy`] | a TCP proxy that breaks connections after an exact byte |
//! | [`process`] | running a command and ending it with its children |
//! | [`source`] | Rust files as tokens |

pub mod adapters;
pub mod audit;
pub mod brokers;
pub mod checks;
pub mod cli;
pub mod codes;
pub mod contract;
pub mod demo;
pub mod error;
pub mod harness;
pub mod instructions;
pub mod laws;
pub mod process;
pub mod proxy;
pub mod source;
pub mod tools;
pub mod workspace;

pub use error::{Error, Result};
