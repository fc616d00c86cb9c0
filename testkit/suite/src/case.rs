//! A case: one promise, one function.

use std::fmt;
use std::time::Duration;

use consign_core_api::capability::DeliveryCount;
use consign_core_api::{Capabilities, Capability, DeliveryGuarantee, OrderingScope};
use futures_util::future::BoxFuture;

use crate::harness::{FaultKind, Harness};
use crate::lab::Lab;
use crate::profile::Profile;

/// How a case ended that did not panic.
pub type CaseResult = Result<(), CaseError>;

/// Why a case failed, as a text for people. Any error converts into it.
pub struct CaseError(String);

impl Need {
    /// Consuming with retries, dead letters and redeliveries.
    pub const AT_LEAST_ONCE: Self = Self::Delivery(DeliveryGuarantee::AtLeastOnce);
    /// Settling before handling.
    pub const AT_MOST_ONCE: Self = Self::Delivery(DeliveryGuarantee::AtMostOnce);
}

impl CaseError {
    /// Describes a failure.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl<E: fmt::Display> From<E> for CaseError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Debug for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails the case unless a condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::CaseError::new(format!($($text)+)));
        }
    };
}

/// The longest time for which a case waits until a broker has forgotten an id.
pub const FORGETFUL: Duration = Duration::from_secs(5);

/// What a case needs to be applicable.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Need {
    /// A capability. Without it, its refusal is asserted by another case.
    Capability(Capability),
    /// A capability that is missing, so that its refusal is asserted.
    Lacks(Capability),
    /// This delivery guarantee.
    Delivery(DeliveryGuarantee),
    /// No order.
    Unordered,
    /// Keys that are not demanded.
    KeyOptional,
    /// A broker that remembers no ids, or forgets them within [`FORGETFUL`].
    ShortMemory,
    /// A broker that remembers ids for longer than [`FORGETFUL`].
    LongMemory,
    /// A REDELIVERY retry that really is given back to the broker: the order, if any, survives it.
    RealRedelivery,
    /// Any order.
    Ordered,
    /// This order, exactly.
    Ordering(OrderingScope),
    /// A fault that the harness offers.
    Fault(FaultKind),
    /// Tombstones that stay distinct from empty payloads.
    Tombstones,
    /// Header values of any bytes.
    BinaryHeaders,
    /// Headers that repeat, in order.
    DuplicateHeaders,
    /// A count of deliveries.
    DeliveryCount,
}

impl Need {
    /// Tells why the need is not met; `None` if it is.
    #[must_use]
    pub fn unmet(
        self,
        harness: &dyn Harness,
        profile: &Profile,
        capabilities: &Capabilities,
    ) -> Option<String> {
        let unless = |met: bool, why: &dyn Fn() -> String| if met { None } else { Some(why()) };
        match self {
            Self::Capability(capability) => unless(capabilities.has(capability), &|| {
                format!("refused as declared: {capability} is {}", capabilities.support(capability))
            }),
            Self::Lacks(capability) => unless(!capabilities.has(capability), &|| {
                format!("{capability} is {}, and proven by other cases", capabilities.support(capability))
            }),
            Self::Delivery(guarantee) => unless(profile.delivery == guarantee, &|| {
                format!("the profile's delivery is {}", profile.delivery)
            }),
            Self::Unordered => unless(!profile.ordering.is_ordered(), &|| {
                format!("the profile's ordering is {}", profile.ordering)
            }),
            Self::KeyOptional => unless(profile.ordering != OrderingScope::Key, &|| {
                "key ordering demands a key, which another case asserts".to_owned()
            }),
            Self::ShortMemory | Self::LongMemory => {
                let window = capabilities.deduplication_window();
                let short = window.is_none_or(|window| window <= FORGETFUL);
                unless(short == matches!(self, Self::ShortMemory), &|| match window {
                    Some(window) => format!("the broker remembers ids for {window:?}"),
                    None => "the broker remembers no ids, as declared".to_owned(),
                })
            }
            Self::RealRedelivery => unless(
                capabilities.has(Capability::Redelivery)
                    && (!profile.ordering.is_ordered() || capabilities.redelivery_keeps_order()),
                &|| "retried in place instead: a redelivery would break the order, as declared".to_owned(),
            ),
            Self::Ordered => {
                unless(profile.ordering.is_ordered(), &|| "the profile asks for no order".to_owned())
            }
            Self::Ordering(scope) => unless(profile.ordering == scope, &|| {
                format!("the profile's ordering is {}", profile.ordering)
            }),
            Self::Fault(kind) => {
                unless(harness.offers().contains(&kind), &|| format!("the harness offers no {kind:?}"))
            }
            Self::Tombstones => {
                unless(capabilities.tombstones(), &|| "no tombstones, as declared".to_owned())
            }
            Self::BinaryHeaders => unless(capabilities.headers().binary_values, &|| {
                "refused as declared: no binary header values".to_owned()
            }),
            Self::DuplicateHeaders => unless(capabilities.headers().duplicates, &|| {
                "refused as declared: no repeated header names".to_owned()
            }),
            Self::DeliveryCount => unless(capabilities.delivery_count() == DeliveryCount::Counted, &|| {
                "the broker does not count deliveries, as declared".to_owned()
            }),
        }
    }
}

/// One promise and the function that proves it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Case {
    /// A sentence, in the form of a function's name.
    pub name: &'static str,
    /// The promise that it proves.
    pub promise: &'static str,
    /// What it needs to be applicable; all of it.
    pub needs: &'static [Need],
    /// The proof.
    pub run: for<'a> fn(&'a Lab) -> BoxFuture<'a, CaseResult>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Lists cases: `name: "promise" [needs]` for each async function of that name that takes `&Lab`.
#[macro_export]
macro_rules! cases {
    ($($name:ident: $promise:literal $([$($need:expr),* $(,)?])?;)+) => {
        /// The cases of this room.
        pub const CASES: &[$crate::Case] = &[$(
            $crate::Case {
                name: stringify!($name),
                promise: $promise,
                needs: &[$($($need),*)?],
                run: |lab| Box::pin($name(lab)),
            },
        )+];
    };
}

impl Case {
    /// Tells whether the case does something to the whole broker, so that no other may run beside it.
    #[must_use]
    pub fn touches_the_whole_broker(&self) -> bool {
        let whole = |need: &Need| matches!(need, Need::Fault(FaultKind::Restart | FaultKind::Freeze));
        self.needs.iter().any(whole)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use consign_core_api::capability::Ordering;
    use consign_core_api::spi::Transport;

    use super::*;
    use crate::harness::Stored;

    /// A harness that is only asked what it offers.
    struct Restarts;

    #[async_trait]
    impl Harness for Restarts {
        fn adapter(&self) -> &'static str {
            "none"
        }
        async fn version(&self) -> String {
            String::new()
        }
        fn transport(&self) -> Arc<dyn Transport> {
            unreachable!("nobody connects")
        }
        async fn read_back(&self, _: &Profile, _: &str) -> Result<Vec<Stored>, String> {
            Err("nothing to read".to_owned())
        }
        fn offers(&self) -> &'static [FaultKind] {
            &[FaultKind::Restart]
        }
    }

    fn met(need: Need, profile: &Profile, window: Option<Duration>) -> bool {
        let declared =
            Capabilities::builder(Ordering::Unordered("".into())).native(Capability::Redelivery, "");
        let declared =
            window.into_iter().fold(declared, |declared, window| declared.deduplication_window(window));
        need.unmet(&Restarts, profile, &declared.build()).is_none()
    }

    #[test]
    fn a_need_is_met_by_what_is_declared_and_offered() {
        let plain = Profile::new("plain");
        let ordered = Profile::new("ordered").ordering(OrderingScope::Key);
        for (need, in_plain, in_ordered) in [
            (Need::Capability(Capability::Redelivery), true, true),
            (Need::Lacks(Capability::Redelivery), false, false),
            (Need::Lacks(Capability::BrokerTransaction), true, true),
            (Need::AT_LEAST_ONCE, true, true),
            (Need::AT_MOST_ONCE, false, false),
            (Need::Ordered, false, true),
            (Need::Unordered, true, false),
            (Need::Ordering(OrderingScope::Key), false, true),
            (Need::KeyOptional, true, false),
            // Declared: a redelivery does not keep the order.
            (Need::RealRedelivery, true, false),
            (Need::Fault(FaultKind::Restart), true, true),
            (Need::Fault(FaultKind::Freeze), false, false),
            (Need::Tombstones, false, false),
            (Need::DeliveryCount, false, false),
        ] {
            assert_eq!(met(need, &plain, None), in_plain, "{need:?} in a plain profile");
            assert_eq!(met(need, &ordered, None), in_ordered, "{need:?} in an ordered profile");
        }
    }

    #[test]
    fn exactly_one_of_short_and_long_memory_applies() {
        let plain = Profile::new("plain");
        for (window, short) in [(None, true), (Some(FORGETFUL), true), (Some(FORGETFUL * 2), false)] {
            assert_eq!(met(Need::ShortMemory, &plain, window), short);
            assert_eq!(met(Need::LongMemory, &plain, window), !short);
        }
    }

    #[test]
    fn only_faults_of_the_whole_broker_keep_other_cases_away() {
        let alone: Vec<_> = crate::cases::all().into_iter().filter(Case::touches_the_whole_broker).collect();
        assert!(!alone.is_empty() && alone.iter().all(|case| !case.needs.is_empty()));
        assert!(!alone.iter().any(|case| case.name.contains("revoked")));
    }
}
