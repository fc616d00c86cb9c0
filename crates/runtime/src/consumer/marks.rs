//! What the library's own headers say of a message that was here before. Headers come from outside: what is malformed
//! counts as absent, and what is none of our business is not looked at.

use std::str::FromStr;
use std::time::Duration;

use consign_core_api::message::{Timestamp, reserved};
use consign_core_api::{DestinationName, GroupName, Headers};

/// What the headers say, as far as it concerns this reader.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// How many attempts failed before.
    pub(super) failed: u32,
    /// When the first of them failed.
    pub(super) first_failed: Option<Timestamp>,
    /// Not to be handled before.
    pub(super) not_before: Option<Timestamp>,
    /// It was meant for another group.
    pub(super) foreign: bool,
    /// How many headers were malformed.
    pub(super) malformed: u32,
}

impl Marks {
    /// Reads the headers of a message that stands in `origin` or one of its retry destinations.
    ///
    /// They count only where they name this origin: a dead letter keeps its origin's headers, and whoever consumes it
    /// starts anew. A copy for another group is foreign on a retry destination, and on the origin if it was redriven.
    pub(super) fn read(headers: &Headers, origin: &DestinationName, group: &GroupName, rung: bool) -> Self {
        let mut marks = Self::default();
        // The usual case, and the only one that has to be fast.
        if !headers.iter().any(|header| reserved::is_reserved(header.name())) {
            return marks;
        }
        let from = marks.parse(headers, reserved::ORIGIN, |text| DestinationName::new(text).ok());
        if from.as_ref() != Some(origin) {
            return marks;
        }
        let redriven = marks.number::<u32>(headers, reserved::REDRIVE).is_some();
        let of = marks.parse(headers, reserved::GROUP, |text| GroupName::new(text).ok());
        if of.as_ref().is_some_and(|of| of != group) {
            marks.foreign = rung || redriven;
            return marks;
        }
        marks.failed = marks.number(headers, reserved::ATTEMPT).unwrap_or(0);
        let millis = marks.number(headers, reserved::FIRST_FAILED_AT);
        marks.first_failed = millis.map(Timestamp::from_millis);
        if rung {
            marks.not_before = marks.number(headers, reserved::NOT_BEFORE).map(Timestamp::from_millis);
        }
        marks
    }

    fn number<N: FromStr>(&mut self, headers: &Headers, name: &str) -> Option<N> {
        self.parse(headers, name, |text| text.parse().ok())
    }

    fn parse<T>(
        &mut self,
        headers: &Headers,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = headers.first(name)?.text().and_then(parse);
        self.malformed += u32::from(value.is_none());
        value
    }

    /// Returns how long to wait before handling, at most `longest`: a stranger's header cannot block a lane.
    pub(super) fn wait(&self, now: Timestamp, longest: Duration) -> Duration {
        let millis = self.not_before.map_or(0, |at| at.millis().saturating_sub(now.millis()));
        Duration::from_millis(u64::try_from(millis).unwrap_or(0)).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(headers: &[(&str, &str)], rung: bool) -> Marks {
        let headers = headers.iter().map(|(n, v)| (*n, v.as_bytes().to_vec())).collect();
        let (origin, group) = (DestinationName::new("orders").unwrap(), GroupName::new("billing").unwrap());
        Marks::read(&headers, &origin, &group, rung)
    }

    #[test]
    fn a_copy_of_this_origin_and_group_is_understood() {
        let marks = read(
            &[
                ("consign-origin", "orders"),
                ("consign-group", "billing"),
                ("consign-attempt", "3"),
                ("consign-first-failed-at", "1000"),
                ("consign-not-before", "5000"),
            ],
            true,
        );
        assert_eq!((marks.failed, marks.foreign, marks.malformed), (3, false, 0));
        assert_eq!(marks.wait(Timestamp::from_millis(4000), Duration::MAX), Duration::from_secs(1));
        assert_eq!(
            marks.wait(Timestamp::from_millis(4000), Duration::from_millis(7)),
            Duration::from_millis(7)
        );
        assert_eq!(marks.wait(Timestamp::from_millis(6000), Duration::MAX), Duration::ZERO);
    }

    #[test]
    fn headers_of_another_origin_do_not_count() {
        let marks = read(&[("consign-origin", "invoices"), ("consign-attempt", "9")], false);
        assert_eq!(marks, Marks::default());
        assert_eq!(read(&[("consign-attempt", "9")], false), Marks::default(), "without an origin neither");
    }

    #[test]
    fn a_copy_of_another_group_is_foreign_on_a_rung_and_where_it_was_redriven() {
        let copy = [("consign-origin", "orders"), ("consign-group", "audit")];
        assert!(read(&copy, true).foreign);
        assert!(!read(&copy, false).foreign);
        let redriven = [copy[0], copy[1], ("consign-redrive", "1")];
        assert!(read(&redriven, false).foreign);
    }

    #[test]
    fn what_is_malformed_counts_as_absent_and_is_counted() {
        let marks = read(
            &[
                ("consign-origin", "orders"),
                ("consign-group", "no group"),
                ("consign-attempt", "-1"),
                ("consign-not-before", "soon"),
            ],
            true,
        );
        assert_eq!(marks, Marks { malformed: 3, ..Marks::default() });
    }

    proptest! {
        #[test]
        fn no_header_makes_reading_panic_or_wait_for_ever(
            name in "consign-(origin|group|attempt|not-before|redrive|first-failed-at)",
            value in proptest::collection::vec(any::<u8>(), 0..24),
            at in any::<i64>(),
            now in any::<i64>(),
        ) {
            let mut headers: Headers = [(name, value)].into_iter().collect();
            headers.push("consign-origin", "orders");
            headers.push("consign-not-before", at.to_string());
            let (origin, group) = (DestinationName::new("orders").unwrap(), GroupName::new("g").unwrap());
            let marks = Marks::read(&headers, &origin, &group, true);
            let longest = Duration::from_secs(10);
            prop_assert!(marks.wait(Timestamp::from_millis(now), longest) <= longest);
        }
    }
}
