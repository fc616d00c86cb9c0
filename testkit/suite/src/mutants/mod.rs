//! Deliberately wrong transports. Each breaks one promise, and at least one case must notice.
