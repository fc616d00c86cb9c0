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

/// Reads the subject on which a delivery is settled. Its older form has nine tokens, the newer one puts domain and
/// account before the stream.
fn origin(reply: &str) -> Option<Origin> {
    let tokens: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
    let numbers = match tokens.len() {
        7 => tokens.get(2..4)?,
        9.. => tokens.get(4..6)?,
        _ => return None,
    };
    let [delivered, sequence] = numbers else { return None };
    let delivered: u64 = delivered.parse().ok()?;
    Some(Origin { delivered: u32::try_from(delivered).unwrap_or(u32::MAX), sequence: sequence.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_settlement_subject_are_read() {
        let expected = Some(Origin { delivered: 3, sequence: 41 });
        assert_eq!(origin("$JS.ACK.ORDERS.billing.3.41.7.1700000000000000000.5"), expected);
        assert_eq!(origin("$JS.ACK._.hash.ORDERS.billing.3.41.7.1700000000000000000.5"), expected);
        assert_eq!(origin("$JS.ACK.hub.hash.ORDERS.billing.3.41.7.1700000000000000000.5.rnd"), expected);
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
