//! Wrong settlements.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use consign_core_api::SettlementLevel;
use consign_core_api::spi::{Completion, SettlementReply, Settler};

use super::tools::{settled, stolen, unheard};
use super::{Mutant, Suits};
use crate::wrap::{Meddle, Site, Verb, intercept, wrapper};

/// A settler that does it in another way.
struct Settling<F>(F);

impl<F> Meddle for Settling<F>
where
    F: Fn(&Arc<dyn Settler>, Verb, Completion<SettlementReply>) + Send + Sync + 'static,
{
    fn verb(&self, _: &Site, inner: &Arc<dyn Settler>, verb: Verb, done: Completion<SettlementReply>) {
        (self.0)(inner, verb, done);
    }
}

fn mutant(
    name: &'static str,
    breaks: &'static str,
    suspects: &'static [&'static str],
    settle: impl Fn(&Arc<dyn Settler>, Verb, Completion<SettlementReply>) + Send + Sync + 'static,
) -> Mutant {
    Mutant { name, breaks, suits: Suits::AtLeastOnce, suspects, wrapper: wrapper(Settling(settle)) }
}

fn answer(done: Completion<SettlementReply>, reply: SettlementReply) {
    let _ = done.hand_over();
    done.resolve(reply);
}

pub(super) fn all() -> Vec<Mutant> {
    let count = AtomicUsize::new(0);
    vec![
        mutant(
            "settles what it should redeliver",
            "a failed delivery comes again",
            &["delivered_again", "failed_message_comes_again", "many_failures"],
            |inner, verb, done| match verb {
                Verb::Redeliver(token, _) => inner.settle(stolen(token), done),
                other => other.pass(inner.as_ref(), done),
            },
        ),
        mutant(
            "settles what it should give back",
            "an unprocessed delivery comes again",
            &["cancelled", "had_not_handled"],
            |inner, verb, done| match verb {
                Verb::Release(token) => inner.settle(stolen(token), done),
                other => other.pass(inner.as_ref(), done),
            },
        ),
        mutant(
            "redelivers at once",
            "a redelivery waits out its delay",
            &["before_its_delay"],
            |inner, verb, done| match verb {
                Verb::Redeliver(token, _) => inner.redeliver(token, Duration::ZERO, done),
                other => other.pass(inner.as_ref(), done),
            },
        ),
        mutant(
            "settles without telling the broker",
            "SETTLED rests on the broker's evidence",
            &["does_not_come_again", "group_that_was_away"],
            |inner, verb, done| {
                if verb.ends() {
                    answer(done, settled(SettlementLevel::Processed));
                } else {
                    verb.pass(inner.as_ref(), done);
                }
            },
        ),
        mutant(
            "claims a firmer settlement than there is",
            "the level of a settlement is what was shown",
            &["firmer"],
            |inner, verb, done| {
                let ends = verb.ends();
                let claim = move |reply, done: Completion<SettlementReply>| {
                    let firm = matches!(reply, SettlementReply::Evidence(_)) && ends;
                    done.resolve(if firm { settled(SettlementLevel::Committed) } else { reply });
                };
                verb.pass(inner.as_ref(), intercept(done, claim));
            },
        ),
        mutant(
            "never answers a settlement",
            "a settlement is answered",
            &["does_not_come_again"],
            move |inner, verb, done| {
                if verb.ends() && count.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
                    verb.pass(
                        inner.as_ref(),
                        intercept(done, |_, done| {
                            let _ = done.into_raw();
                        }),
                    );
                } else {
                    verb.pass(inner.as_ref(), done);
                }
            },
        ),
        mutant(
            "redelivers what it should settle",
            "a settled message does not come again",
            &["does_not_come_again"],
            |inner, verb, done| {
                let token = verb.token();
                if matches!(verb, Verb::Settle(_)) {
                    inner.release(token, unheard(&done));
                    answer(done, settled(SettlementLevel::Processed));
                } else {
                    verb.pass(inner.as_ref(), done);
                }
            },
        ),
        mutant(
            "leaves the source of a copy where it is",
            "after a CONFIRMED copy its source does not come again",
            &["dead_letter"],
            |inner, verb, done| match verb {
                Verb::Terminate(permit) => {
                    inner.release(permit.token(), unheard(&done));
                    answer(done, settled(SettlementLevel::Processed));
                }
                other => other.pass(inner.as_ref(), done),
            },
        ),
    ]
}
