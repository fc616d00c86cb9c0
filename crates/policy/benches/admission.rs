//! What admission costs: `cargo bench -p consign-policy --bench admission`.
//!
//! Permits are dropped inside the measured closure, because what it returns is dropped after the clock stopped.
//! The waits of `async` code are not measured here: an uncontended `admit` is polled once and ready.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use consign_core_api::MaxPayload;
use consign_policy::admission::{Admission, AdmissionLimits, Class, Gate, Permit, Refused};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

const SIZE: usize = 1024;

fn gate(slots: usize) -> Gate {
    let slots = NonZeroUsize::MIN.saturating_add(slots - 1);
    Admission::new(AdmissionLimits::default()).destination(slots, MaxPayload::default())
}

/// Polls once; nothing here waits.
fn now<F: Future<Output = Result<Permit, Refused>>>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

/// Admits and gives back, on 1, 4 and 16 threads that share one destination.
#[divan::bench(threads = [1, 4, 16])]
fn admit_and_release(bencher: Bencher<'_, '_>) {
    let gate = gate(1024);
    bencher
        .bench(|| drop(now(gate.admit(black_box(Class::External), black_box(SIZE), Duration::from_secs(5)))));
}

/// The same with a verdict first and the bytes later.
#[divan::bench(threads = [1, 4, 16])]
fn admit_verdict_and_release(bencher: Bencher<'_, '_>) {
    let gate = gate(1024);
    bencher.bench(|| {
        let answer = now(gate.admit(black_box(Class::External), black_box(SIZE), Duration::from_secs(5)));
        if let Some(Ok(mut permit)) = answer {
            permit.verdict();
        }
    });
}

/// From the reserve.
#[divan::bench(threads = [1, 4])]
fn admit_and_release_internal(bencher: Bencher<'_, '_>) {
    let gate = gate(1024);
    bencher.bench(|| drop(gate.try_admit(black_box(Class::Internal), black_box(SIZE))));
}

/// All slots of the destination are taken.
#[divan::bench(threads = [1, 4])]
fn refused_by_the_destination(bencher: Bencher<'_, '_>) {
    let gate = gate(1);
    let _held = gate.try_admit(Class::External, SIZE);
    bencher.bench(|| gate.try_admit(black_box(Class::External), black_box(SIZE)));
}

/// The process-wide count is full.
#[divan::bench(threads = [1, 4])]
fn refused_by_the_process(bencher: Bencher<'_, '_>) {
    let gate = gate(1 << 20);
    let _held: Vec<_> = std::iter::from_fn(|| gate.try_admit(Class::External, 1).ok()).collect();
    bencher.bench(|| gate.try_admit(black_box(Class::External), black_box(1)));
}
