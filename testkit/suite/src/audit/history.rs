//! What happened in a run: one record a line, in one clock.

use std::io::{self, BufRead, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use consign_core_api::SettlementLevel;
use serde::{Deserialize, Serialize};

/// Something that happened, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a line of the file")]
pub struct Record {
    /// Microseconds since the history began.
    pub at: u64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened. Messages are named by their ids, which are unique in a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// What the run is. The first record.
    Run(Run),
    /// A publish was called.
    Call {
        /// The message.
        id: String,
        /// The destination.
        destination: String,
        /// Its key, which no other destination has.
        key: String,
        /// Its number among the calls of its key, ascending.
        n: u64,
        /// Whether the caller waits for this outcome alone, so that the time until he is told counts too.
        awaited: bool,
        /// How many microseconds the call may wait for others, as its page says, before its own deadline begins: a window
        /// that is full waits for its oldest.
        #[serde(default, skip_serializing_if = "is_zero")]
        behind: u64,
    },
    /// The caller dropped the future of a publish, or of the window that held it.
    Dropped {
        /// The message.
        id: String,
        /// After how many polls.
        polls: u64,
    },
    /// A publish was given to its adapter.
    Sent {
        /// The message.
        id: String,
    },
    /// Somebody was told how a publish ended.
    Told {
        /// The message.
        id: String,
        /// Who was told.
        to: Told,
        /// How it ended.
        verdict: Verdict,
    },
    /// The broker's answer came after the verdict.
    Late {
        /// The message.
        id: String,
        /// Whether it was an acceptance.
        accepted: bool,
    },
    /// A delivery came.
    Delivered(Delivery),
    /// A handler started with a delivery.
    Handled {
        /// The delivery.
        delivery: Delivery,
        /// The key that came with it.
        key: String,
        /// The number that came with it.
        n: u64,
    },
    /// A settlement ended.
    Settled {
        /// The delivery.
        delivery: Delivery,
        /// How firmly it is settled; `None` is SETTLEMENT_UNKNOWN.
        level: Option<SettlementLevel>,
    },
    /// Something was done to the broker or the connection.
    Fault {
        /// What.
        what: String,
    },
    /// A message was deleted on purpose.
    Deleted {
        /// The message.
        id: String,
    },
    /// A timer of the run itself fired so many microseconds late.
    Lag {
        /// How late.
        micros: u64,
    },
    /// What is still charged after everything ended.
    Permits {
        /// Publishes in flight.
        in_flight: u64,
        /// Bytes in flight.
        bytes: u64,
    },
    /// A group was given the time to handle everything that stands in a destination.
    Drained {
        /// The group.
        group: String,
        /// The destination.
        destination: String,
    },
    /// A message stands at the broker.
    Found {
        /// The message.
        id: String,
        /// Its key.
        key: String,
        /// Its number.
        n: u64,
        /// Where.
        position: String,
    },
    /// The broker was read to its end.
    ReadBack {
        /// How many messages were found.
        count: u64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a line of the file")]
pub struct Run {
    /// Where randomness starts.
    pub seed: u64,
    /// The adapter's word.
    pub broker: String,
    /// The kind of fault.
    pub fault: String,
    /// Whether the profile keeps the order of a key.
    pub ordered: bool,
    /// The deadline of a publish in microseconds.
    pub deadline: u64,
    /// By how many microseconds a verdict may miss its deadline besides the measured lag.
    pub tolerance: u64,
    /// What has to be seen, or the run proved nothing.
    pub expects: Expects,
}

/// What a run has to show so that it proved something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Expects {
    /// At least one AMBIGUOUS.
    Ambiguous,
    /// At least one dropped future of which only the observer knows the end.
    Dropped,
    /// At least one settlement of unknown end or one redelivery.
    SettlementUnknown,
    /// Nothing: a run without faults.
    Nothing,
}

/// Who was told of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the two who are told")]
pub enum Told {
    /// The caller, by the future.
    Caller,
    /// The observer, at the verdict.
    Observer,
}

/// How a publish ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "part of a line of the file")]
pub struct Verdict {
    /// Which of the three.
    pub outcome: Outcome,
    /// The code of what is not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The attempts of what is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Whether what is confirmed is said to be there once, for certain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Where what is confirmed is said to stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
}

/// The three ends of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth")]
pub enum Outcome {
    /// CONFIRMED.
    Confirmed,
    /// REJECTED.
    Rejected,
    /// AMBIGUOUS.
    Ambiguous,
}

/// Which delivery. Where the broker has positions, a message that stands there twice is two.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "part of a line of the file")]
pub struct Delivery {
    /// The group.
    pub group: String,
    /// The message; empty where it came without an id.
    pub id: String,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
}

/// The records of a run, in the order of their times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a list with a name")]
pub struct History(pub Vec<Record>);

impl History {
    /// Writes a JSON object a line.
    ///
    /// # Errors
    /// As the writer.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        for record in &self.0 {
            serde_json::to_writer(&mut to, record)?;
            to.write_all(b"\n")?;
        }
        to.flush()
    }

    /// Reads what [`write`](Self::write) wrote. Empty lines are passed over.
    ///
    /// # Errors
    /// As the reader, and `InvalidData` with the number of the first line that is no record.
    pub fn read(from: impl BufRead) -> io::Result<Self> {
        let mut records = Vec::new();
        for (number, line) in from.lines().enumerate() {
            let line = line?;
            if !line.trim().is_empty() {
                records.push(serde_json::from_str(&line).map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {error}", number + 1))
                })?);
            }
        }
        Ok(Self(records))
    }
}

/// Writes a history while it happens, from any thread. It is kept in memory: some 200 bytes a record.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    records: Mutex<Vec<Record>>,
}

impl Recorder {
    /// Begins a history now.
    #[must_use]
    pub fn begin(run: Run) -> Self {
        let first = Record { at: 0, event: Event::Run(run) };
        Self { began: Instant::now(), records: Mutex::new(vec![first]) }
    }

    /// Records something that happens now.
    pub fn note(&self, event: Event) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that times ascend.
        let at = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        records.push(Record { at, event });
    }

    /// Returns what happened so far.
    #[must_use]
    pub fn history(&self) -> History {
        History(self.records.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_reads_back_as_it_was_written() {
        let run = Run {
            seed: 7,
            broker: "nats".into(),
            fault: "kill".into(),
            ordered: true,
            deadline: 1,
            tolerance: 2,
            expects: Expects::Ambiguous,
        };
        let recorder = Recorder::begin(run);
        let delivery = Delivery { group: "g".into(), id: "a".into(), position: Some("offset:0:1".into()) };
        recorder.note(Event::Call {
            id: "a".into(),
            destination: "d".into(),
            key: "k".into(),
            n: 0,
            awaited: true,
            behind: 0,
        });
        let verdict = Verdict {
            outcome: Outcome::Confirmed,
            code: None,
            attempts: Some(2),
            once: false,
            position: Some("offset:0:1".into()),
        };
        recorder.note(Event::Told { id: "a".into(), to: Told::Caller, verdict });
        recorder.note(Event::Handled { delivery: delivery.clone(), key: "k".into(), n: 0 });
        recorder.note(Event::Settled { delivery, level: Some(SettlementLevel::Committed) });
        recorder.note(Event::ReadBack { count: 0 });
        let history = recorder.history();
        let mut bytes = Vec::new();
        history.write(&mut bytes).unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 6);
        assert_eq!(History::read(bytes.as_slice()).unwrap(), history);
        assert!(history.0.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn a_line_that_is_no_record_is_named() {
        let error =
            History::read("{\"at\":1,\"event\":\"sent\",\"id\":\"a\"}\n\n{oops".as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("line 3:"), "{error}");
    }
}
