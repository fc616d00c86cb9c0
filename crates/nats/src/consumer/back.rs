//! What to give back to a durable after an interruption.

use async_nats::Subject;
use async_nats::jetstream::consumer::Info;

use super::pull;

/// What was delivered to a unit since it was made.
pub(super) struct Seen {
    from: u64,
    to: u64,
    /// The subject of some delivery.
    reply: Subject,
}

impl Seen {
    /// Adds a delivery.
    pub(super) fn and(before: Option<Self>, sequence: u64, reply: Subject) -> Self {
        match before {
            None => Self { from: sequence, to: sequence, reply },
            Some(seen) => Self { from: seen.from.min(sequence), to: seen.to.max(sequence), reply },
        }
    }

    /// Returns the first sequence of the stream that was delivered.
    pub(super) const fn from(&self) -> u64 {
        self.from
    }
}

/// Chooses what to give back to the durable as it is `now`: from what was `out` before the interruption, and all that
/// came `late`, which the server surely knows. `ordered` is what a unit saw that has one delivery out at a time.
pub(super) fn still_out(
    mut out: Vec<Subject>,
    late: Vec<Subject>,
    before: Option<&Info>,
    now: &Info,
    ordered: Option<&Seen>,
) -> Vec<Subject> {
    if before.is_some_and(|before| before.created != now.created) {
        // Made anew, it hands out everything; what belongs to the old one would hit a delivery of the new one.
        return Vec::new();
    }
    let (sequence, handed_out) = (now.delivered.stream_sequence, now.delivered.consumer_sequence);
    // A server that was killed may know less than it handed out: it hands that out again by itself.
    out.retain(|reply| pull::origin(reply).is_some_and(|origin| origin.handed_out <= handed_out));
    out.extend(late);
    // Or it has forgotten that something was settled. Where one is out at a time, that one is known, and this unit had
    // it and has it no more: otherwise it would hold everything back until its settlement deadline.
    let is_out = |reply: &Subject| pull::origin(reply).is_some_and(|origin| origin.sequence == sequence);
    if let Some(seen) = ordered
        && now.num_ack_pending > 0
        && (seen.from..=seen.to).contains(&sequence)
        && !out.iter().any(is_out)
    {
        out.extend(pull::of_other(&seen.reply, sequence, handed_out).map(Subject::from));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A durable made at this hour that has handed out so much.
    fn durable(hour: u32, sequence: u64, handed_out: u64, pending: usize) -> Info {
        serde_json::from_value(serde_json::json!({
            "stream_name": "S", "name": "c", "created": format!("2024-01-01T{hour:02}:00:00Z"),
            "config": {"ack_policy": "explicit", "deliver_policy": "all", "replay_policy": "instant"},
            "delivered": {"stream_seq": sequence, "consumer_seq": handed_out},
            "ack_floor": {"stream_seq": 0, "consumer_seq": 0},
            "num_ack_pending": pending, "num_redelivered": 0, "num_waiting": 0, "num_pending": 0
        }))
        .unwrap()
    }

    fn reply(sequence: u64, handed_out: u64) -> Subject {
        Subject::from(format!("$JS.ACK.S.c.1.{sequence}.{handed_out}.17.0"))
    }

    #[test]
    fn what_the_durable_still_knows_goes_back() {
        let before = durable(1, 0, 0, 0);
        let out = || vec![reply(4, 4), reply(5, 5)];
        assert_eq!(still_out(out(), vec![], Some(&before), &durable(1, 5, 5, 2), None), out());
        assert_eq!(still_out(out(), vec![], Some(&before), &durable(1, 4, 4, 1), None), [reply(4, 4)]);
        let late = || vec![reply(6, 6)];
        assert_eq!(still_out(vec![], late(), Some(&before), &durable(1, 5, 5, 2), None), late());
        assert_eq!(still_out(out(), late(), Some(&before), &durable(2, 6, 6, 3), None), [], "made anew");
    }

    #[test]
    fn a_forgotten_settlement_of_an_order_goes_back_where_it_was_ours() {
        let before = durable(1, 0, 0, 0);
        let seen = [3, 4, 5].into_iter().fold(None, |seen, n| Some(Seen::and(seen, n, reply(n, n + 10))));
        let back = |now: Info| still_out(vec![], vec![], Some(&before), &now, seen.as_ref());
        assert_eq!(back(durable(1, 4, 14, 1)), [Subject::from("$JS.ACK.S.c.1.4.14.17.0")]);
        assert_eq!(back(durable(1, 4, 14, 0)), [], "nothing is out");
        assert_eq!(back(durable(1, 6, 16, 1)), [], "somebody else has it");
        assert_eq!(back(durable(1, 2, 12, 1)), [], "somebody else had it");
        assert_eq!(back(durable(2, 4, 14, 1)), [], "made anew");
        let out = vec![reply(4, 14)];
        assert_eq!(still_out(out.clone(), vec![], None, &durable(1, 4, 14, 1), seen.as_ref()), out, "once");
    }
}
