//! Durations as they are written in native settings: `500ms`, `2m`, `7d`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// Reads a duration, a whole number and a unit of `ms`, `s`, `m`, `h` or `d`.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| parse(&text).ok_or_else(|| de::Error::custom(complaint(&text)))).transpose()
}

fn complaint(text: &str) -> String {
    format!("{text:?} is no duration: write a whole number and ms, s, m, h or d")
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_number_and_a_unit_and_never_overflow() {
        assert_eq!(parse("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse("2m"), Some(Duration::from_secs(120)));
        assert_eq!(parse("7d"), Some(Duration::from_secs(7 * 86_400)));
        for odd in
            ["", "5", "s", "-1s", "1.5s", "1 s", "1w", "99999999999999999999s", "18446744073709551615d"]
        {
            assert_eq!(parse(odd), None, "{odd:?}");
        }
    }
}
