//! With an inbox an effect takes place once, however often its message comes.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use consign_core_api::{ExternalSideEffectGuarantee, MessageId};
use consign_policy::{MessageIdSpec, ProfileSpec, ProfileSpecs};
use consign_runtime::consumer::Delivery;
use consign_runtime::inbox::{MemoryInbox, MemoryTransaction};

use crate::case::{CaseResult, Need};
use crate::ensure;
use crate::history::{Happened, What};
use crate::lab::{Lab, Number};
use crate::wrap::{Faults, SettleFault};

crate::cases! {
    a_message_that_comes_twice_has_one_effect:
        "two copies under one id have one effect, and both are settled" [Need::AT_LEAST_ONCE];
    an_effect_whose_settlement_was_lost_does_not_take_place_again:
        "after SETTLEMENT_UNKNOWN the redelivery is recognised, settled and not handled"
        [Need::AT_LEAST_ONCE];
    an_inbox_without_message_ids_is_refused:
        "INBOX_TRANSACTIONAL needs an identity" [Need::AT_LEAST_ONCE];
}

fn spec(lab: &Lab) -> ProfileSpec {
    lab.spec().side_effects(ExternalSideEffectGuarantee::InboxTransactional)
}

fn inbox() -> MemoryInbox {
    MemoryInbox::new(NonZeroUsize::MIN.saturating_add(99))
}

/// Consumes with an inbox and a handler whose effect is one more.
async fn consume(
    lab: &Lab,
    messaging: &consign_runtime::Messaging,
    name: &str,
    inbox: &MemoryInbox,
    effects: &Arc<AtomicUsize>,
) -> CaseResult {
    let effects = Arc::clone(effects);
    let handler = move |_: Delivery<Number>, mut tx: MemoryTransaction| {
        let effects = Arc::clone(&effects);
        async move {
            tx.on_commit(move || {
                let _ = effects.fetch_add(1, Ordering::SeqCst);
            });
            Ok(tx)
        }
    };
    lab.within("starting to consume", messaging.consume_with_inbox(name, "g", inbox.clone(), handler))
        .await??
        .detach();
    Ok(())
}

async fn a_message_that_comes_twice_has_one_effect(lab: &Lab) -> CaseResult {
    let (messaging, name) = lab.one_with(spec(lab)).await?;
    let publisher = messaging.publisher::<Number>(&name)?;
    let id = MessageId::generate();
    for n in [1, 1, 1] {
        let _ = lab.confirmed(publisher.publish(Number::message(n, "k").id(id.clone()))).await?;
    }
    let _ = lab.confirmed(publisher.publish(Number::message(2, "k"))).await?;
    let copies = lab.stored(&name).await?.len();
    let (inbox, effects) = (inbox(), Arc::default());
    consume(lab, &messaging, &name, &inbox, &effects).await?;
    lab.happened("every settlement", copies, Happened::is_settled).await?;
    let effects = effects.load(Ordering::SeqCst);
    ensure!(effects == 2, "two messages, {copies} copies, and {effects} effects");
    lab.end(&messaging).await
}

async fn an_effect_whose_settlement_was_lost_does_not_take_place_again(lab: &Lab) -> CaseResult {
    let faults =
        Arc::new(Faults::settling(|_, n| if n == 0 { SettleFault::Lost } else { SettleFault::None }));
    let name = lab.destination("d");
    let specs = || ProfileSpecs::new().with(&name, spec(lab));
    let messaging = lab.start_with(faults, specs()).await?;
    lab.publish(&messaging, &name, "k", [1]).await?;
    let (inbox, effects) = (inbox(), Arc::default());
    consume(lab, &messaging, &name, &inbox, &effects).await?;
    lab.happened("an unknown settlement", 1, |event| matches!(event.what, What::SettlementUnknown(_)))
        .await?;
    lab.end(&messaging).await?;
    let again = lab.start(specs()).await?;
    consume(lab, &again, &name, &inbox, &effects).await?;
    lab.happened("the settlement", 1, Happened::is_settled).await?;
    let effects = effects.load(Ordering::SeqCst);
    ensure!(effects == 1, "{effects} effects of one message");
    lab.end(&again).await
}

async fn an_inbox_without_message_ids_is_refused(lab: &Lab) -> CaseResult {
    let refused = lab.one_with(spec(lab).message_id(MessageIdSpec::None)).await;
    let report = refused.err().map(|report| report.to_string()).unwrap_or_default();
    ensure!(report.contains("INBOX_WITHOUT_MESSAGE_IDENTITY"), "{report:?}");
    Ok(())
}
