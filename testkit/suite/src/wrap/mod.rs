//! Something between the runtime and a transport: for mutants, and for faults that no broker can be asked for.

mod intercept;
mod meddle;
mod transport;

use std::sync::Arc;

use consign_core_api::spi::Transport;

pub use intercept::intercept;
pub use meddle::{Meddle, Verb};
pub use transport::meddled;

/// Puts something in front of a transport.
pub type Wrapper = Arc<dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport> + Send + Sync>;

/// Makes a wrapper of a meddler. Every transport that is wrapped shares it.
pub fn wrapper(meddle: impl Meddle) -> Wrapper {
    let meddle: Arc<dyn Meddle> = Arc::new(meddle);
    Arc::new(move |transport| meddled(transport, Arc::clone(&meddle)))
}
