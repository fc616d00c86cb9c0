//! The graph of retries and dead letters.
