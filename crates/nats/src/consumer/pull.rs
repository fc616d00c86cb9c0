//! The pull protocol: what is asked for, and what comes back.

use std::time::Duration;

use async_nats::Message;
use bytes::Bytes;

/// How long the server keeps a pull that it has nothing for.
pub(super) const EXPIRES: Duration = Duration::from_secs(30);
/// How often it says that it is there meanwhile.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(2);
/// How long nothing at all may come while a pull is out: two heartbeats and a little.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// The request for `batch` messages.
pub(super) fn request(batch: usize) -> Bytes {
    let (expires, heartbeat) = (EXPIRES.as_nanos(), HEARTBEAT.as_nanos());
    Bytes::from(format!(r#"{{"batch":{batch},"expires":{expires},"idle_heartbeat":{heartbeat}}}"#))
}

/// What came on the inbox of the pulls.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// A message of the stream.
    Delivery(Origin),
    /// The server is there.
    Heartbeat,
    /// A pull ended in time; that many of its messages did not come.
    Expired { left: usize },
    /// A pull ended for another reason.
    Ended { status: u16 },
    /// Nothing that a server sends.
    Stray,
}

/// Where a delivery comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) delivered: u32,
    pub(super) sequence: u64,
    /// Its number among all that the durable handed out.
    pub(super) handed_out: u64,
}

pub(super) fn read(message: &Message) -> Came {
    match message.status.map(|status| status.as_u16()) {
        None | Some(200) => {
            let origin = message.reply.as_ref().and_then(|reply| origin(reply));
            origin.map_or(Came::Stray, Came::Delivery)
        }
        Some(100) => Came::Heartbeat,
        Some(status @ (404 | 408)) => {
            let left = message.headers.as_ref().and_then(|headers| headers.get("Nats-Pending-Messages"));
            left.and_then(|left| left.as_str().parse().ok())
                .map_or(Came::Ended { status }, |left| Came::Expired { left })
        }
        Some(status) => Came::Ended { status },
    }
}

/// Where the numbers begin in the subject on which a delivery is settled: its older form has nine tokens, the newer one
/// puts domain and account before the stream.
fn numbers_at(tokens: &[&str]) -> Option<usize> {
    match tokens {
        ["$JS", "ACK", ..] if tokens.len() == 9 => Some(4),
        ["$JS", "ACK", ..] if tokens.len() >= 11 => Some(6),
        _ => None,
    }
}

/// Reads the subject on which a delivery is settled.
pub(super) fn origin(reply: &str) -> Option<Origin> {
    let tokens: Vec<&str> = reply.split('.').collect();
    let at = numbers_at(&tokens)?;
    let [delivered, sequence, handed_out] = tokens.get(at..at + 3)? else { return None };
    let delivered: u64 = delivered.parse().ok()?;
    Some(Origin {
        delivered: u32::try_from(delivered).unwrap_or(u32::MAX),
        sequence: sequence.parse().ok()?,
        handed_out: handed_out.parse().ok()?,
    })
}

/// Turns the subject of one delivery into that of another one of the same durable.
pub(super) fn of_other(reply: &str, sequence: u64, handed_out: u64) -> Option<String> {
    let mut tokens: Vec<&str> = reply.split('.').collect();
    let at = numbers_at(&tokens)?;
    let (sequence, handed_out) = (sequence.to_string(), handed_out.to_string());
    *tokens.get_mut(at + 1)? = &sequence;
    *tokens.get_mut(at + 2)? = &handed_out;
    Some(tokens.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_settlement_subject_are_read() {
        let expected = Some(Origin { delivered: 3, sequence: 41, handed_out: 7 });
        assert_eq!(origin("$JS.ACK.ORDERS.billing.3.41.7.1700000000000000000.5"), expected);
        assert_eq!(origin("$JS.ACK._.hash.ORDERS.billing.3.41.7.1700000000000000000.5"), expected);
        assert_eq!(origin("$JS.ACK.hub.hash.ORDERS.billing.3.41.7.1700000000000000000.5.rnd"), expected);
    }

    #[test]
    fn the_subject_of_another_delivery_differs_in_its_numbers_only() {
        for (one, other) in [
            ("$JS.ACK.S.c.3.41.7.17.5", "$JS.ACK.S.c.3.40.6.17.5"),
            ("$JS.ACK._.hash.S.c.3.41.7.17.5", "$JS.ACK._.hash.S.c.3.40.6.17.5"),
        ] {
            assert_eq!(of_other(one, 40, 6).unwrap(), other);
        }
        assert_eq!(of_other("_INBOX.x", 40, 6), None);
    }

    #[test]
    fn other_subjects_are_no_deliveries() {
        for odd in
            ["", "$JS.ACK.", "$JS.ACK.a.b.c", "_INBOX.x", "$JS.ACK.S.c.x.41.7.1.5", "$JS.ACK.S.c.1.-1.7.1.5"]
        {
            assert_eq!(origin(odd), None, "{odd}");
        }
    }
}
