//! A count and a number of bytes in one word, so that both are taken together or not at all.

const BYTE_BITS: u32 = 40;
const COUNT_BITS: u32 = 22;
const BYTES: u64 = (1 << BYTE_BITS) - 1;
const COUNT: u64 = ((1 << COUNT_BITS) - 1) << BYTE_BITS;

/// Someone waits for the word to change, and wants to be told.
pub(super) const WAITED: u64 = 1 << 62;
/// Nothing new may be added to the word.
pub(super) const CLOSED: u64 = 1 << 63;

/// The largest count that limits allow: a quarter of what the word holds.
pub(super) const LARGEST_COUNT: u64 = 1 << 20;
/// The largest number of bytes that limits allow: half of what the word holds.
pub(super) const LARGEST_BYTES: u64 = 1 << 39;

/// How many messages, and how many bytes.
///
/// Sums stay inside the word, because nothing is added beyond a limit, and limits are far below what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Units(u64);

impl Units {
    pub(super) const ONE: Self = Self(1 << BYTE_BITS);

    /// Makes units of values that were checked against the largest ones.
    pub(super) const fn new(count: u64, bytes: u64) -> Self {
        Self(((count << BYTE_BITS) & COUNT) | (bytes & BYTES))
    }

    /// One message of a size.
    pub(super) const fn message(bytes: u64) -> Self {
        Self::new(1, bytes)
    }

    /// The bytes of a message whose count was returned.
    pub(super) const fn bytes_only(bytes: u64) -> Self {
        Self::new(0, bytes)
    }

    /// Reads the units out of a word, whatever its flags.
    pub(super) const fn in_word(word: u64) -> Self {
        Self(word & (COUNT | BYTES))
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    pub(super) const fn count(self) -> u64 {
        self.0 >> BYTE_BITS
    }

    pub(super) const fn bytes(self) -> u64 {
        self.0 & BYTES
    }

    /// Tells whether `more` fits under `limit` on top of these.
    pub(super) const fn leave_room_for(self, more: Self, limit: Self) -> bool {
        self.count() + more.count() <= limit.count() && self.bytes() + more.bytes() <= limit.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_limits_fit_a_word_beside_both_flags() {
        let largest = Units::new(LARGEST_COUNT, LARGEST_BYTES);
        assert_eq!((largest.count(), largest.bytes()), (LARGEST_COUNT, LARGEST_BYTES));
        let read = Units::in_word(largest.word() | WAITED | CLOSED);
        assert_eq!(read, largest);
        assert_eq!(COUNT & BYTES, 0);
        assert_eq!((COUNT | BYTES) & (WAITED | CLOSED), 0);
    }

    #[test]
    fn room_ends_exactly_at_either_limit() {
        let limit = Units::new(2, 10);
        assert!(Units::message(4).leave_room_for(Units::message(6), limit));
        assert!(!Units::message(4).leave_room_for(Units::message(7), limit));
        assert!(!Units::new(2, 0).leave_room_for(Units::message(0), limit));
        assert!(Units::new(2, 0).leave_room_for(Units::bytes_only(10), limit));
    }
}
