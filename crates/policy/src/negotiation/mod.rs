//! Capability negotiation: what a profile asks, against what a broker can give.
