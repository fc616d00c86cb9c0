//! A subscription: one durable pull consumer per unit.

mod back;
mod ledger;
mod pull;
mod unit;
mod up;

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use consign_core_api::spi::{
    Batch, DestinationSetup, Settler, Subscription, SubscriptionSpec, TransportError, UnitId,
};
use futures_util::future::{join_all, select_all};

pub(crate) use ledger::Ledger;

use self::unit::Unit;
use crate::connection::Shared;
use crate::settlement::NatsSettler;
use crate::topology::{Group, Prepared};

/// The deliveries of one group, pulled from each unit's durable.
pub(crate) struct NatsSubscription {
    units: Vec<Unit>,
    settler: Arc<NatsSettler>,
    /// The unit that is asked first, so that a busy one does not starve the others.
    turn: usize,
}

impl NatsSubscription {
    pub(crate) async fn start(
        shared: &Arc<Shared>,
        setup: &DestinationSetup,
        prepared: &Prepared,
        spec: SubscriptionSpec,
    ) -> Result<Self, TransportError> {
        let count = prepared.names.subjects().len();
        let ledger = Arc::new(Ledger::new(count));
        let settler = Arc::new(NatsSettler::start(shared, Arc::clone(&ledger), spec.outstanding.get()));
        // Every partition needs a pull of its own, also where there are more of them than may be outstanding.
        let share = (spec.outstanding.get() / count.max(1)).max(1);
        let mut units = Vec::with_capacity(count);
        for unit in 0..count {
            let group = Group::new(setup, prepared, &spec, unit);
            let id = UnitId::new(u32::try_from(unit).unwrap_or(u32::MAX));
            let unit =
                Unit::new(id, Arc::clone(shared), group, Arc::clone(&ledger), Arc::clone(&settler), share);
            units.push(unit);
        }
        for unit in &mut units {
            unit.open().await?;
        }
        Ok(Self { units, settler, turn: 0 })
    }
}

#[async_trait]
impl Subscription for NatsSubscription {
    async fn next(&mut self, max: NonZeroUsize) -> Batch {
        let mut batch = Batch::new();
        while batch.is_empty() {
            match self.units.as_mut_slice() {
                [] => std::future::pending().await,
                [only] => only.ready(max.get()).await,
                // Each of these is cancel safe, so the ones that are dropped lose nothing.
                units => drop(select_all(units.iter_mut().map(|unit| Box::pin(unit.ready(1)))).await),
            }
            let count = self.units.len();
            let mut room = max.get();
            for i in 0..count {
                room = self.units[(self.turn + i) % count].drain_into(&mut batch, room);
            }
            self.turn = (self.turn + 1) % count.max(1);
        }
        batch
    }

    fn settler(&self) -> Arc<dyn Settler> {
        Arc::clone(&self.settler) as Arc<dyn Settler>
    }

    async fn close(&mut self) {
        join_all(self.units.iter_mut().map(Unit::close)).await;
    }
}
