//! What happens after which byte.

use std::time::Duration;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a connection has two directions")]
pub enum Direction {
    /// From the client to the broker.
    ToBroker,
    /// From the broker to the client.
    ToClient,
}

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Both ends are told by FIN that it is over. What the rule let pass arrives; nothing else does.
    Close,
    /// Both ends are told by RST. What an end has not read by then may be lost to it.
    Reset,
    /// The receiver of this direction is told by FIN that nothing more comes; the other direction goes on.
    HalfClose,
    /// Further bytes of this direction are swallowed; the connection stays.
    BlackHole,
    /// Further bytes of this direction wait once for so long.
    Delay(Duration),
    /// Further bytes of this direction are written one by one.
    OneByteSlices,
}

/// After `after` further bytes of `direction`, `act` happens.
///
/// Exactly so many bytes pass. With zero, it happens when the next byte comes, which does not pass; otherwise at once
/// after the last one that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "which way, how many, and what")]
pub struct Rule {
    /// Which bytes are counted.
    pub direction: Direction,
    /// How many of them pass.
    pub after: u64,
    /// What happens then.
    pub act: Act,
}

/// A rule and how many bytes are still to pass.
#[derive(Debug)]
pub(super) struct Armed {
    rule: Rule,
    left: u64,
}

impl Armed {
    pub(super) const fn new(rule: Rule) -> Self {
        Self { rule, left: rule.after }
    }
}

/// What becomes of the next bytes: so many pass, and then something may happen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) pass: usize,
    pub(super) then: Option<Act>,
}

/// Counts bytes against the armed rule, which is gone when it fires.
pub(super) fn piece(armed: &mut Option<Armed>, direction: Direction, available: usize) -> Piece {
    let whole = Piece { pass: available, then: None };
    match armed {
        Some(Armed { rule, left }) if rule.direction == direction => match usize::try_from(*left) {
            Ok(pass) if pass <= available => {
                let act = rule.act;
                *armed = None;
                Piece { pass, then: Some(act) }
            }
            _ => {
                *left -= available as u64;
                whole
            }
        },
        _ => whole,
    }
}
