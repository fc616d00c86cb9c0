//! Which lane a delivery belongs to.

use bytes::Bytes;
use consign_core_api::OrderingScope;
use consign_core_api::spi::UnitId;

/// The name of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::consumer) enum LaneName {
    /// A delivery without an order: a lane of its own.
    Alone,
    /// The whole destination.
    Whole,
    /// One unit of assignment.
    Unit(UnitId),
    /// One key, in whatever unit it comes.
    Key(Bytes),
}

impl LaneName {
    /// Names the lane of a delivery. A message without a key belongs to the lane of its unit; an empty key is a key.
    pub(in crate::consumer) fn of(scope: OrderingScope, unit: UnitId, key: Option<&Bytes>) -> Self {
        match (scope, key) {
            (OrderingScope::None, _) => Self::Alone,
            (OrderingScope::Partition, _) | (OrderingScope::Key, None) => Self::Unit(unit),
            (OrderingScope::Key, Some(key)) => Self::Key(key.clone()),
            // The whole destination, and any scope that is not known here: one sequence keeps every order.
            _ => Self::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_key_is_a_key_and_an_absent_one_is_its_unit() {
        let unit = UnitId::new(3);
        let empty = Bytes::new();
        assert_eq!(LaneName::of(OrderingScope::Key, unit, Some(&empty)), LaneName::Key(Bytes::new()));
        assert_eq!(LaneName::of(OrderingScope::Key, unit, None), LaneName::Unit(unit));
    }

    #[test]
    fn only_key_order_looks_at_the_key() {
        let (unit, key) = (UnitId::new(3), Bytes::from_static(b"k"));
        assert_eq!(LaneName::of(OrderingScope::None, unit, Some(&key)), LaneName::Alone);
        assert_eq!(LaneName::of(OrderingScope::Partition, unit, Some(&key)), LaneName::Unit(unit));
        assert_eq!(LaneName::of(OrderingScope::Destination, unit, Some(&key)), LaneName::Whole);
    }
}
