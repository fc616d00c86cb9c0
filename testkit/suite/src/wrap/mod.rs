//! Something between the runtime and a transport: for mutants, and for faults that no broker can be asked for.
//!
//! | file | what it holds |
//! |---|---|
//! | `meddle` | what can be meddled with |
//! | `transport` | the seam with a meddler in front |
//! | `intercept` | an answer changed or held on its way back |
//! | `fault` | the faults that cases choose |
//! | `redeclare` | a declaration, changed |

mod fault;
mod intercept;
mod meddle;
mod redeclare;
mod transport;

use std::sync::Arc;

use consign_core_api::spi::Transport;

pub use fault::{Counts, Faults, PublishFault, SettleFault};
pub use intercept::intercept;
pub use meddle::{Meddle, Site, Verb};
pub use redeclare::redeclare;
pub use transport::meddled;

/// Puts something in front of a transport.
pub type Wrapper = Arc<dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport> + Send + Sync>;

/// Makes a wrapper of a meddler. Every transport that is wrapped shares it.
pub fn wrapper(meddle: impl Meddle) -> Wrapper {
    let meddle: Arc<dyn Meddle> = Arc::new(meddle);
    Arc::new(move |transport| meddled(transport, Arc::clone(&meddle)))
}
