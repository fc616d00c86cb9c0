//! The headers that the library itself writes, all with the prefix `consign-`.
//!
//! Adapters write [`ID`] and [`KEY`] where their broker has no native field; the runtime writes the others on
//! retry and dead-letter copies. A user's header with the prefix is refused before transmission.

/// The prefix that belongs to the library.
pub const PREFIX: &str = "consign-";
/// The message id, where the broker has no native field for it.
pub const ID: &str = "consign-id";
/// The key in base64url without padding, where the broker has no native field for it.
pub const KEY: &str = "consign-key";
/// Present where the payload is a tombstone and the broker cannot say so.
pub const TOMBSTONE: &str = "consign-tombstone";
/// The timestamp in milliseconds, where the broker has no native field for it.
pub const TIMESTAMP: &str = "consign-timestamp";
/// The destination that a retry or dead-letter copy comes from.
pub const ORIGIN: &str = "consign-origin";
/// The group whose handler failed.
pub const GROUP: &str = "consign-group";
/// The position of the original.
pub const POSITION: &str = "consign-position";
/// The number of failed attempts so far.
pub const ATTEMPT: &str = "consign-attempt";
/// Milliseconds since the Unix epoch before which a retry copy is not handled.
pub const NOT_BEFORE: &str = "consign-not-before";
/// The code of the failure that made the copy.
pub const FAILURE_CODE: &str = "consign-failure-code";
/// The category of that failure.
pub const FAILURE_CATEGORY: &str = "consign-failure-category";
/// The text of that failure, cut first when the copy grows too large.
pub const FAILURE_TEXT: &str = "consign-failure-text";
/// Milliseconds since the Unix epoch of the first failure.
pub const FIRST_FAILED_AT: &str = "consign-first-failed-at";
/// Milliseconds since the Unix epoch of the last failure.
pub const FAILED_AT: &str = "consign-failed-at";
/// How often the message was sent back from a dead letter.
pub const REDRIVE: &str = "consign-redrive";

/// Tells whether a header name belongs to the library. Case does not matter.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_reserved_in_any_case_and_odd_names_do_not_panic() {
        assert!(is_reserved("consign-x") && is_reserved("Consign-Id") && is_reserved("consign-"));
        assert!(
            !is_reserved("consign")
                && !is_reserved("x-consign-id")
                && !is_reserved("")
                && !is_reserved("ééééé")
        );
    }
}
