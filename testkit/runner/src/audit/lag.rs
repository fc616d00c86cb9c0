//! Measures how late the machine is, on a thread of its own: a library that blocks the executor gets no excuse from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use consign_testkit::audit::Event;

use super::Recording;

const STEP: Duration = Duration::from_millis(2);
/// Less is not worth a record.
const LEAST: Duration = Duration::from_millis(2);

/// A thread that sleeps and looks how long it slept.
pub(super) struct Prober(Arc<AtomicBool>);

impl Prober {
    pub(super) fn start(recorder: Recording) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(STEP);
                let late = began.elapsed().saturating_sub(STEP);
                if late >= LEAST {
                    let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
                    recorder.note(Event::Lag { micros });
                }
            }
        });
        Self(stop)
    }

    pub(super) fn stop(self) {}
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
