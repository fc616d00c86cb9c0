use std::sync::Arc;

use consign_core_api::{DestinationName, GroupName, TransportName};

fn destination() -> DestinationName {
    DestinationName(Arc::from("a..b"))
}

fn group() -> GroupName {
    GroupName(Arc::from(""))
}

fn transport() -> TransportName {
    TransportName(Arc::from("*"))
}

fn main() {}
