//! Copies of failed messages. Payload, key, id and every header stay byte for byte; the library's own headers are
//! added, and replaced where they were there before.

use bytes::Bytes;
use consign_core_api::message::{Timestamp, reserved};
use consign_core_api::{DestinationName, EncodedMessage, Failure, GroupName, Headers, MessagePosition};

/// What a copy says of its source.
#[derive(Debug)]
pub(super) struct CopyFacts<'a> {
    pub(super) origin: &'a DestinationName,
    pub(super) group: &'a GroupName,
    pub(super) position: Option<&'a MessagePosition>,
    /// How many attempts have failed.
    pub(super) failed: u32,
    pub(super) failure: &'a Failure,
    pub(super) first_failed: Timestamp,
    pub(super) now: Timestamp,
    /// For a retry destination: not to be handled before.
    pub(super) not_before: Option<Timestamp>,
}

/// The headers that a copy replaces. The count of redrives and the original's position stay.
const REPLACED: [&str; 9] = [
    reserved::ORIGIN,
    reserved::GROUP,
    reserved::ATTEMPT,
    reserved::NOT_BEFORE,
    reserved::FAILURE_CODE,
    reserved::FAILURE_CATEGORY,
    reserved::FAILURE_TEXT,
    reserved::FIRST_FAILED_AT,
    reserved::FAILED_AT,
];

/// Makes the copy. `limit` is what its destination takes in bytes: the text of the failure is cut to fit, or left out;
/// nothing else is.
pub(super) fn copy(source: &EncodedMessage, facts: &CopyFacts<'_>, limit: usize) -> EncodedMessage {
    let mut copy = source.clone();
    // A partition of the source means nothing at the destination.
    copy.set_partition(None);
    let headers = copy.headers_mut();
    headers.retain(|header| !is_one_of(header.name(), &REPLACED));
    add(headers, reserved::ORIGIN, facts.origin.as_str());
    add(headers, reserved::GROUP, facts.group.as_str());
    if headers.first(reserved::POSITION).is_none()
        && let Some(position) = facts.position
    {
        add(headers, reserved::POSITION, &position.to_string());
    }
    add(headers, reserved::ATTEMPT, &facts.failed.to_string());
    if let Some(not_before) = facts.not_before {
        add(headers, reserved::NOT_BEFORE, &not_before.millis().to_string());
    }
    add(headers, reserved::FAILURE_CODE, facts.failure.code().as_str());
    add(headers, reserved::FAILURE_CATEGORY, facts.failure.category().as_str());
    add(headers, reserved::FIRST_FAILED_AT, &facts.first_failed.millis().to_string());
    add(headers, reserved::FAILED_AT, &facts.now.millis().to_string());
    let room = limit.saturating_sub(copy.size()).saturating_sub(reserved::FAILURE_TEXT.len());
    let text = one_line(facts.failure.message());
    let text = cut(&text, room.min(LONGEST_TEXT)).trim_end();
    if !text.is_empty() {
        add(copy.headers_mut(), reserved::FAILURE_TEXT, text);
    }
    copy
}

/// Makes the message that goes back from a dead letter: what the failure added is gone, origin and group stay, so that
/// other groups pass it over, and the count of redrives is one higher.
pub(crate) fn redriven(dead: &EncodedMessage) -> EncodedMessage {
    let mut message = dead.clone();
    message.set_partition(None);
    let before =
        dead.headers().first(reserved::REDRIVE).and_then(|header| header.text()?.parse::<u32>().ok());
    let headers = message.headers_mut();
    let gone = |name: &str| {
        let stays = is_one_of(name, &[reserved::ORIGIN, reserved::GROUP]);
        !stays && (is_one_of(name, &REPLACED) || is_one_of(name, &[reserved::POSITION, reserved::REDRIVE]))
    };
    headers.retain(|header| !gone(header.name()));
    add(headers, reserved::REDRIVE, &before.unwrap_or(0).saturating_add(1).to_string());
    message
}

/// Tells whether a message stands in the stream of its source and not behind it: then it is no copy of it. Two
/// destinations may share one stream and what it remembers of ids. An offset names no log, so that nothing is known of it.
pub(crate) fn is_before(position: Option<&MessagePosition>, source: Option<&MessagePosition>) -> bool {
    match (position, source) {
        (
            Some(MessagePosition::Sequence { stream, sequence }),
            Some(MessagePosition::Sequence { stream: of_source, sequence: source }),
        ) => stream == of_source && sequence <= source,
        _ => false,
    }
}

/// A header of a message is at most this long: brokers and logs have little patience with a kilobyte of stack trace.
const LONGEST_TEXT: usize = 1024;

fn add(headers: &mut Headers, name: &'static str, value: &str) {
    headers.push(name, Bytes::copy_from_slice(value.as_bytes()));
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Makes a text that every broker carries as a header's value: one line, without control characters and outer blanks.
/// With any of these some refuse the whole message, and a failed message would have nowhere to go.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> =
        text.split(char::is_control).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Cuts a text to at most `bytes` bytes, between characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use consign_core_api::{Code, FailureCategory, Message, MessageId};
    use proptest::prelude::*;

    use super::*;

    fn failure(text: &str) -> Failure {
        Failure::new(FailureCategory::TransientInfrastructure, Code::new("DOWN"), text.to_owned())
    }

    fn make(source: &EncodedMessage, failure: &Failure, limit: usize) -> EncodedMessage {
        let facts = CopyFacts {
            origin: &DestinationName::new("orders").unwrap(),
            group: &GroupName::new("billing").unwrap(),
            position: Some(&MessagePosition::Offset { partition: 1, offset: 2 }),
            failed: 3,
            failure,
            first_failed: Timestamp::from_millis(10),
            now: Timestamp::from_millis(20),
            not_before: None,
        };
        copy(source, &facts, limit)
    }

    fn source() -> EncodedMessage {
        let message =
            Message::<()>::tombstone().key("").header("x", "1").header("y", [0xff]).header("x", "2");
        let (_, mut parts) = message.id(MessageId::new("id-1").unwrap()).partition(7).into_parts();
        parts.headers.push(reserved::ATTEMPT, "2");
        parts.headers.push(reserved::REDRIVE, "1");
        EncodedMessage::new("payload", parts)
    }

    fn text<'a>(message: &'a EncodedMessage, name: &'a str) -> Vec<&'a str> {
        message.headers().all(name).map(|header| header.text().unwrap()).collect()
    }

    #[test]
    fn everything_of_the_user_stays_and_ours_is_replaced_not_doubled() {
        let source = source();
        let copy = make(&source, &failure("no route"), 1 << 20);
        let again = make(&copy, &failure("still none"), 1 << 20);
        for copy in [&copy, &again] {
            assert_eq!(
                (copy.payload(), copy.key(), copy.id()),
                (source.payload(), source.key(), source.id())
            );
            assert_eq!(copy.headers().as_slice()[..3], source.headers().as_slice()[..3]);
            assert_eq!(copy.partition(), None);
            assert_eq!(text(copy, reserved::ATTEMPT), ["3"]);
            assert_eq!(text(copy, reserved::REDRIVE), ["1"]);
            assert_eq!(text(copy, reserved::POSITION), ["offset:1:2"]);
        }
        assert_eq!(text(&again, reserved::FAILURE_TEXT), ["still none"]);
        assert_eq!(copy.headers().len(), again.headers().len());
    }

    #[test]
    fn a_redriven_message_keeps_id_origin_and_group_and_counts_up() {
        let back = redriven(&make(&source(), &failure("no route"), 1 << 20));
        assert_eq!(back.id(), source().id());
        assert_eq!(text(&back, reserved::REDRIVE), ["2"]);
        assert_eq!(text(&back, reserved::ORIGIN), ["orders"]);
        assert_eq!(text(&back, reserved::GROUP), ["billing"]);
        for gone in [reserved::ATTEMPT, reserved::FAILURE_CODE, reserved::FAILURE_TEXT, reserved::POSITION] {
            assert!(back.headers().first(gone).is_none(), "{gone}");
        }
        assert_eq!(text(&back, "x"), ["1", "2"]);
    }

    #[test]
    fn a_text_of_many_lines_becomes_one_that_every_broker_carries() {
        for (said, carried) in [
            (" no route\r\n  at a\n\tat b\u{0}c \n", "no route at a at b c"),
            ("\u{85}grüße\u{2003}", "grüße"),
        ] {
            let copy = make(&source(), &failure(said), 1 << 20);
            assert_eq!(text(&copy, reserved::FAILURE_TEXT), [carried]);
        }
        // The cut may fall behind a blank.
        let room = make(&source(), &failure(""), 1 << 20).size() + reserved::FAILURE_TEXT.len() + 3;
        assert_eq!(text(&make(&source(), &failure("no route"), room), reserved::FAILURE_TEXT), ["no"]);
        let copy = make(&source(), &failure("\r\n \t"), 1 << 20);
        assert!(copy.headers().first(reserved::FAILURE_TEXT).is_none());
    }

    proptest! {
        #[test]
        fn the_text_is_cut_first_and_never_inside_a_character(words in "\\PC{0,60}", slack in 0..120_usize) {
            let bare = make(&source(), &failure(""), usize::MAX).size();
            let copy = make(&source(), &failure(&words), bare + slack);
            prop_assert!(copy.size() <= bare + slack);
            let kept = text(&copy, reserved::FAILURE_TEXT);
            prop_assert!(kept.iter().all(|kept| words.trim_start().starts_with(kept)));
        }
    }
}
