//! How late the machine itself was.

/// Times in which a timer of the run did not get the processor, ascending.
#[derive(Debug, Default)]
pub(super) struct Lags(Vec<(u64, u64)>);

impl Lags {
    /// A timer that was due `micros` earlier fired at `at`.
    pub(super) fn add(&mut self, at: u64, micros: u64) {
        self.0.push((at.saturating_sub(micros), at));
    }

    pub(super) fn worst(&self) -> u64 {
        self.0.iter().map(|(from, to)| to - from).max().unwrap_or_default()
    }

    /// Returns the lag that explains why something due at `due` happened at `at`: the longest that reaches into the time
    /// between. One prober makes them, so they do not overlap, and few lie between.
    pub(super) fn between(&self, due: u64, at: u64) -> u64 {
        let first = self.0.partition_point(|(_, to)| *to < due);
        let reach = self.0.iter().skip(first).take_while(|(from, _)| *from <= at);
        reach.map(|(from, to)| to - from).max().unwrap_or_default()
    }
}
