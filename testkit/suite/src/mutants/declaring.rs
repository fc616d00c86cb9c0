//! Wrong declarations and validators.

use std::time::Duration;

use consign_core_api::capability::HeaderModel;
use consign_core_api::spi::{DestinationSetup, NativeSettings};
use consign_core_api::{Capabilities, Capability, OrderingScope, Problem};

use super::{Mutant, Suits};
use crate::wrap::{Meddle, redeclare, wrapper};

/// Declares something that is not so.
struct Declaring<F>(F);

impl<F: Fn(&DestinationSetup, Capabilities) -> Capabilities + Send + Sync + 'static> Meddle for Declaring<F> {
    fn capabilities(&self, setup: &DestinationSetup, declared: Capabilities) -> Capabilities {
        (self.0)(setup, declared)
    }
}

fn mutant(
    name: &'static str,
    breaks: &'static str,
    suits: Suits,
    suspects: &'static [&'static str],
    declare: impl Fn(&DestinationSetup, Capabilities) -> Capabilities + Send + Sync + 'static,
) -> Mutant {
    Mutant { name, breaks, suits, suspects, wrapper: wrapper(Declaring(declare)) }
}

/// Declares an order and opens the destination without one.
struct OrderedInNameOnly;

impl Meddle for OrderedInNameOnly {
    fn open(&self, mut setup: DestinationSetup) -> DestinationSetup {
        setup.ordering = OrderingScope::None;
        setup
    }
}

/// Has a validator that nobody asks.
struct Unvalidated;

impl Meddle for Unvalidated {
    fn validate(&self, _: &DestinationSetup, _: Vec<Problem>) -> Vec<Problem> {
        Vec::new()
    }

    fn open(&self, mut setup: DestinationSetup) -> DestinationSetup {
        #[derive(serde::Deserialize)]
        struct Known {
            no_such_setting_anywhere: Option<u64>,
        }
        // It takes no notice of what it does not know.
        if setup.native.parse::<Known>().is_ok_and(|known| known.no_such_setting_anywhere.is_some()) {
            setup.native = NativeSettings::default();
        }
        setup
    }
}

pub(super) fn all() -> Vec<Mutant> {
    vec![
        Mutant {
            name: "declares an order that it does not keep",
            breaks: "a declared order is kept, also over redeliveries",
            suits: Suits::Ordered,
            suspects: &["order_is_kept", "second_member"],
            wrapper: wrapper(OrderedInNameOnly),
        },
        Mutant {
            name: "has a validator that nobody asks",
            breaks: "the adapter's validator is wired into build",
            suits: Suits::Any,
            suspects: &["unknown_native"],
            wrapper: wrapper(Unvalidated),
        },
        mutant(
            "declares deduplication that it has not",
            "a declared deduplication stores an id once",
            Suits::Forgetful,
            &["repeated_id"],
            |_, declared| {
                redeclare(&declared, declared.ordering().clone())
                    .native(Capability::PublishDeduplication, "by hearsay")
                    .deduplication_window(Duration::from_secs(60))
                    .build()
            },
        ),
        mutant(
            "declares transactions that it has not",
            "a declared transaction begins",
            Suits::Any,
            &["broker_transaction"],
            |_, declared| {
                redeclare(&declared, declared.ordering().clone())
                    .native(Capability::BrokerTransaction, "by hearsay")
                    .build()
            },
        ),
        mutant(
            "declares fewer headers than it carries",
            "what is declared as missing is refused",
            Suits::Any,
            &["repeated_headers", "binary_header"],
            |_, declared| {
                redeclare(&declared, declared.ordering().clone())
                    .headers(HeaderModel::new(false, false, true))
                    .tombstones(false)
                    .build()
            },
        ),
        mutant(
            "leaves a capability unanswered",
            "each of the twelve capabilities is answered",
            Suits::Any,
            &["answered_with_a_note"],
            |_, declared| {
                redeclare(&declared, declared.ordering().clone())
                    .unsupported(Capability::NativeDeadLetter, "")
                    .build()
            },
        ),
    ]
}
