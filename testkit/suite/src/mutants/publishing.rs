//! Wrong publishers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use consign_core_api::outcome::{ConfirmationEvidence, Copies, Evidenced, Persistence, Transmission};
use consign_core_api::spi::{
    Acceptance, Completion, Destination, PublishReply, PublishRequest, Refusal, SlotKey, Withdrawal,
};
use consign_core_api::{EncodedMessage, MessagePosition, Payload};

use super::tools::{accepted, parts_of, unconditional, unheard};
use super::{Mutant, Suits};
use crate::wrap::{Meddle, Site, intercept, wrapper};

type To<'a> = (&'a Arc<dyn Destination>, PublishRequest, Completion<PublishReply>);

/// A publisher that does it in another way.
struct Publishing<F>(F);

impl<F: Fn(&Site, To<'_>) + Send + Sync + 'static> Meddle for Publishing<F> {
    fn publish(
        &self,
        site: &Site,
        inner: &Arc<dyn Destination>,
        request: PublishRequest,
        done: Completion<PublishReply>,
    ) {
        (self.0)(site, (inner, request, done));
    }
}

fn mutant(
    name: &'static str,
    breaks: &'static str,
    suits: Suits,
    suspects: &'static [&'static str],
    publish: impl Fn(&Site, To<'_>) + Send + Sync + 'static,
) -> Mutant {
    Mutant { name, breaks, suits, suspects, wrapper: wrapper(Publishing(publish)) }
}

/// A publisher that changes the message on its way.
fn changing(
    name: &'static str,
    breaks: &'static str,
    suspects: &'static [&'static str],
    change: impl Fn(EncodedMessage) -> EncodedMessage + Send + Sync + 'static,
) -> Mutant {
    mutant(name, breaks, Suits::Any, suspects, move |_, (inner, mut request, done)| {
        request.message = change(request.message);
        inner.publish(request, done);
    })
}

/// A publisher that changes the answer on its way.
fn answering(
    name: &'static str,
    breaks: &'static str,
    suspects: &'static [&'static str],
    change: impl Fn(PublishReply) -> PublishReply + Send + Sync + 'static,
) -> Mutant {
    let change = Arc::new(change);
    mutant(name, breaks, Suits::Any, suspects, move |_, (inner, request, done)| {
        let change = Arc::clone(&change);
        inner.publish(request, intercept(done, move |reply, done| done.resolve(change(reply))));
    })
}

/// Says that it took back what it had sent.
struct TakesBackWhatItSent;

impl Meddle for TakesBackWhatItSent {
    fn withdraw(&self, _: &Site, inner: &Arc<dyn Destination>, key: SlotKey) -> Withdrawal {
        let _ = inner.withdraw(key);
        Withdrawal::Withdrawn
    }
}

pub(super) fn all() -> Vec<Mutant> {
    let mut all = truth();
    all.extend(content());
    all
}

fn truth() -> Vec<Mutant> {
    let nth = |every: usize| {
        let count = AtomicUsize::new(0);
        move || count.fetch_add(1, Ordering::Relaxed) % every == every - 1
    };
    let (dropped, doubled, forgotten) = (nth(5), nth(5), nth(5));
    vec![
        mutant(
            "confirms before the broker did",
            "CONFIRMED means that the broker accepted the message",
            Suits::Any,
            &["silent_broker", "broker_died"],
            |_, (inner, request, done)| {
                if done.hand_over() {
                    inner.publish(request, unheard(&done));
                    done.resolve(accepted());
                }
            },
        ),
        answering(
            "reports a refusal as success",
            "REJECTED by the broker is REJECTED",
            &["does_not_exist"],
            |reply| if matches!(reply, PublishReply::Refused(_)) { accepted() } else { reply },
        ),
        answering(
            "reports unknown as refused",
            "unknown is AMBIGUOUS",
            &["broker_died"],
            |reply| match reply {
                PublishReply::Unknown(why) => {
                    PublishReply::Refused(Refusal::new(Transmission::NotTransmitted, why))
                }
                other => other,
            },
        ),
        mutant(
            "confirms a message that it dropped",
            "a CONFIRMED message is stored",
            Suits::Any,
            &["confirmed"],
            move |_, (inner, request, done)| {
                if dropped() && done.hand_over() {
                    done.resolve(accepted())
                } else {
                    inner.publish(request, done)
                }
            },
        ),
        mutant(
            "stores a message twice",
            "the adapter sends a message once",
            Suits::Forgetful,
            &["stored_once", "batch"],
            move |_, (inner, request, done)| {
                if doubled() {
                    inner.publish(request.clone(), unheard(&done));
                }
                inner.publish(request, done);
            },
        ),
        mutant(
            "forgets to answer",
            "every publish is answered",
            Suits::Any,
            &["stored_once", "own_speed"],
            move |_, (inner, request, done)| {
                if forgotten() {
                    inner.publish(
                        request,
                        intercept(done, |_, done| {
                            let _ = done.into_raw();
                        }),
                    );
                } else {
                    inner.publish(request, done);
                }
            },
        ),
        mutant(
            "sends what was given up",
            "without a hand-over nothing is transmitted",
            Suits::Any,
            &["never_handed_over", "never_sent"],
            |_, (inner, request, done)| inner.publish(request, unconditional(done)),
        ),
        Mutant {
            name: "takes back what it had sent",
            breaks: "withdrawn means that no byte was written",
            suits: Suits::Any,
            suspects: &["silent_broker"],
            wrapper: wrapper(TakesBackWhatItSent),
        },
        mutant(
            "answers twice",
            "a completion is answered exactly once",
            Suits::Any,
            &["answers_each_publish_once"],
            |_, (inner, request, done)| {
                let again = (Arc::clone(done.sink()), done.key());
                inner.publish(
                    request,
                    intercept(done, move |reply, done| {
                        done.resolve(reply.clone());
                        again.0.resolve_one(again.1, reply);
                    }),
                );
            },
        ),
        answering(
            "claims more copies than there are",
            "evidence is what was shown",
            &["no_more_than_is_declared"],
            |reply| match reply {
                PublishReply::Accepted(_) => {
                    let min = std::num::NonZeroU16::MIN.saturating_add(2);
                    let copies = Evidenced::observed(Copies::Quorum { min });
                    let evidence =
                        ConfirmationEvidence::new(copies, Evidenced::observed(Persistence::Flushed));
                    PublishReply::Accepted(Acceptance::new(evidence))
                }
                other => other,
            },
        ),
        answering(
            "tells a wrong position",
            "a position is where the message stands",
            &["names_the_place"],
            |reply| match reply {
                PublishReply::Accepted(acceptance) => PublishReply::Accepted(
                    acceptance.at(MessagePosition::Offset { partition: 0, offset: 4711 }),
                ),
                other => other,
            },
        ),
        overtaking(),
    ]
}

/// Lets every fourth message of a destination go behind the next one.
fn overtaking() -> Mutant {
    let state: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    mutant(
        "lets a publish overtake another",
        "publishes of one unit reach the wire in call order",
        Suits::Ordered,
        &["pipelined_publishes"],
        move |site, (inner, request, done)| {
            let count = {
                let mut counts = state.lock().unwrap_or_else(PoisonError::into_inner);
                let count = counts.entry(site.destination.as_str().to_owned()).or_default();
                *count += 1;
                *count
            };
            if count % 4 != 0 {
                return inner.publish(request, done);
            }
            let inner = Arc::clone(inner);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(2)).await;
                inner.publish(request, done);
            });
        },
    )
}

fn content() -> Vec<Mutant> {
    vec![
        changing("loses the headers", "headers arrive as they were", &["headers_arrive"], |message| {
            let mut parts = parts_of(&message);
            parts.headers.retain(|header| header.name().starts_with("consign-"));
            EncodedMessage::new(message.payload().clone(), parts)
        }),
        changing(
            "sorts the headers",
            "headers keep their order",
            &["headers_arrive", "repeated"],
            |message| {
                let mut parts = parts_of(&message);
                let mut all: Vec<_> = parts.headers.iter().cloned().collect();
                all.sort_by(|a, b| a.name().cmp(b.name()));
                parts.headers = all.into_iter().map(|h| (h.name().to_owned(), h.value().clone())).collect();
                EncodedMessage::new(message.payload().clone(), parts)
            },
        ),
        changing(
            "turns a tombstone into empty bytes",
            "a tombstone is no empty payload",
            &["tombstone"],
            |message| {
                let parts = parts_of(&message);
                let payload = match message.payload() {
                    Payload::Tombstone => Payload::Bytes(Bytes::new()),
                    bytes @ Payload::Bytes(_) => bytes.clone(),
                };
                EncodedMessage::new(payload, parts)
            },
        ),
        changing(
            "takes an empty payload for a tombstone",
            "an empty payload is a payload",
            &["an_empty_payload"],
            |message| {
                let empty = message.payload().is_empty();
                let payload = if empty { Payload::Tombstone } else { message.payload().clone() };
                EncodedMessage::new(payload, parts_of(&message))
            },
        ),
        changing("drops the key", "a key arrives as it was", &["key"], |mut message| {
            message.set_key(None);
            message
        }),
        changing("takes an empty key for none", "an empty key is a key", &["an_empty_key"], |mut message| {
            if message.key().is_some_and(Bytes::is_empty) {
                message.set_key(None);
            }
            message
        }),
        changing(
            "gives a message another id",
            "an id is the message's own",
            &["message_id"],
            |mut message| {
                message.set_id(Some(consign_core_api::MessageId::generate()));
                message
            },
        ),
        changing("loses the timestamp", "a timestamp arrives", &["timestamp"], |mut message| {
            message.set_timestamp(None);
            message
        }),
        changing(
            "cuts a payload at its first zero byte",
            "payloads are bytes",
            &["binary_payload"],
            |message| {
                let parts = parts_of(&message);
                let cut = message.payload().as_bytes().map(|bytes| {
                    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                    bytes.slice(..end)
                });
                EncodedMessage::new(cut.map_or(Payload::Tombstone, Payload::Bytes), parts)
            },
        ),
    ]
}
