//! Free ports on the loopback interface.

use std::net::{Ipv4Addr, TcpListener};

use crate::{Error, Result};

/// Returns a loopback port that was free a moment ago. Someone else may take it before it is used; callers try again
/// with another one then.
pub(super) fn free() -> Result<u16> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("looking for a free port"))?;
    Ok(listener.local_addr().map_err(Error::io("looking for a free port"))?.port())
}
