//! Admission as its users see it.

mod cancelling;
mod classes;
mod contention;
mod model;
mod order;
mod waiting;

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use consign_core_api::MaxPayload;

use super::{Admission, AdmissionLimits, Class, Gate, Permit, Refused};

const SECOND: Duration = Duration::from_secs(1);

fn n(value: usize) -> NonZeroUsize {
    NonZeroUsize::new(value).unwrap()
}

fn limits(in_flight: usize, bytes: usize, wait: Duration, share: f64) -> AdmissionLimits {
    AdmissionLimits::new(n(in_flight), n(bytes), wait, share).unwrap()
}

/// An admission and the gate of one destination with plenty of slots.
fn open(limits: AdmissionLimits) -> (Admission, Gate) {
    let admission = Admission::new(limits);
    let gate = admission.destination(n(1000), MaxPayload::default());
    (admission, gate)
}

fn code(answer: Result<Permit, Refused>) -> &'static str {
    answer.err().map_or("admitted", |refused| refused.code().as_str())
}

/// Nothing is left anywhere, and everything can be had again.
fn assert_all_back(admission: &Admission, gate: &Gate) {
    assert_eq!(admission.usage(), super::Usage::default());
    assert_eq!(gate.in_flight(), 0);
    let ordinary = admission.limits().common().count();
    let all: Vec<_> = (0..ordinary).map(|_| gate.try_admit(Class::External, 0).unwrap()).collect();
    drop(all);
    let most = admission.limits().largest_message(Class::External).min(gate.largest_message(Class::External));
    drop(gate.try_admit(Class::External, most).unwrap());
}

/// A boxed admission, polled by hand, that counts its wake-ups.
struct Poller {
    future: Pin<Box<dyn Future<Output = Result<Permit, Refused>> + Send>>,
    woken: Arc<Woken>,
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Poller {
    fn new(gate: &Gate, class: Class, size: usize) -> Self {
        let gate = gate.clone();
        let future = Box::pin(async move { gate.admit(class, size, Duration::MAX).await });
        Self { future, woken: Arc::default() }
    }

    fn poll(&mut self) -> Option<Result<Permit, Refused>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    fn was_woken(&self) -> bool {
        self.woken.0.swap(0, Ordering::SeqCst) > 0
    }
}

#[test]
fn permits_and_futures_cross_threads() {
    fn crosses<T: Send + 'static>(_: &T) {}
    let (admission, gate) = open(AdmissionLimits::default());
    crosses(&gate.try_admit(Class::External, 1));
    crosses(&Poller::new(&gate, Class::External, 1).future);
    let drained = async move { admission.drained(Class::External).await };
    crosses(&drained);
}
