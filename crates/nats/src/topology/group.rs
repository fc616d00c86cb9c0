//! The durable consumer of a group.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Config, DeliverPolicy, Info, PriorityPolicy};
use consign_core_api::error::{Phase, Problem};
use consign_core_api::failure::{Failure, FailureCategory};
use consign_core_api::spi::{DestinationSetup, Start, SubscriptionSpec, TopologyMode, TransportError};

use super::Prepared;
use super::requests::{self, Refused};
use crate::codes;
use crate::connection::Shared;

const DEFAULT_ACK_PENDING: i64 = 1000;

/// The durable of one group for one unit of a destination.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) stream: String,
    pub(crate) durable: String,
    config: Config,
    mode: TopologyMode,
    ordered: bool,
    at: consign_core_api::name::DestinationName,
    /// Written in the profile, and so compared.
    ack_pending: Option<i64>,
}

/// Where a durable begins that has to be made again, because somebody deleted it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recreate {
    /// The first sequence that this subscription ever saw.
    pub(crate) seen_from: Option<u64>,
}

impl Group {
    pub(crate) fn new(
        setup: &DestinationSetup,
        prepared: &Prepared,
        spec: &SubscriptionSpec,
        unit: usize,
    ) -> Self {
        let durable = prepared.names.durable(&spec.group, unit);
        let subject = prepared.names.subjects().get(unit).map_or("", |subject| &**subject);
        let ordered = setup.ordering.is_ordered() && !spec.any_order;
        let ack_pending = prepared.native.max_ack_pending.map(|n| i64::from(n.get()));
        let config = Config {
            durable_name: Some(durable.clone()),
            name: Some(durable.clone()),
            deliver_policy: match setup.consumer.start {
                Start::Latest => DeliverPolicy::New,
                _ => DeliverPolicy::All,
            },
            ack_policy: AckPolicy::Explicit,
            ack_wait: setup.consumer.settlement_deadline,
            // The server's own limit leaves a message that reaches it stuck: nobody gets it again, nobody is told.
            max_deliver: -1,
            filter_subject: subject.to_owned(),
            max_ack_pending: if ordered { 1 } else { ack_pending.unwrap_or(DEFAULT_ACK_PENDING) },
            ..Config::default()
        };
        let stream = prepared.names.stream().to_owned();
        Self { stream, durable, config, mode: setup.topology, ordered, at: setup.name.clone(), ack_pending }
    }

    /// Tells whether one delivery at a time is handed out.
    pub(crate) const fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Looks at the durable, creates it where it may, and compares it. Each request is bounded by the connection's
    /// request timeout. A durable that has to be made again starts early enough to lose nothing: messages that were
    /// settled come again. Returns what it looked at; nothing is looked at where the topology is trusted.
    pub(crate) async fn ready(
        &self,
        shared: &Shared,
        again: Option<Recreate>,
    ) -> Result<Option<Box<Info>>, TransportError> {
        if self.mode == TopologyMode::Trust {
            return Ok(None);
        }
        let info = match requests::consumer(shared, &self.stream, &self.durable).await {
            Err(Refused::Missing) if self.mode == TopologyMode::Declare => {
                let mut config = self.config.clone();
                if let (Some(Recreate { seen_from: Some(start_sequence) }), DeliverPolicy::New) =
                    (again, config.deliver_policy)
                {
                    config.deliver_policy = DeliverPolicy::ByStartSequence { start_sequence };
                }
                requests::create_consumer(shared, &self.stream, &self.durable, &config).await
            }
            found => found,
        };
        match info {
            Ok(info) => self.compare(&info).map(|()| Some(Box::new(info))),
            Err(Refused::Missing) => Err(TransportError::Refused(vec![self.problem(
                codes::TOPOLOGY_MISSING,
                "the durable consumer does not exist",
                "create it, or use topology = \"declare\"",
            )])),
            Err(other) => Err(TransportError::Failed(Failure::new(
                FailureCategory::TransientInfrastructure,
                codes::NATS_REQUEST_FAILED,
                format!("the durable consumer {:?} cannot be looked at or created: {other}", self.durable),
            ))),
        }
    }

    fn problem(&self, code: consign_core_api::Code, text: &str, help: &str) -> Problem {
        Problem::new(Phase::Preflight, code, text, help)
            .field("durable", &self.durable)
            .field("native.stream", &self.stream)
            .at(&self.at)
    }

    fn compare(&self, info: &Info) -> Result<(), TransportError> {
        let (real, wanted) = (&info.config, &self.config);
        let mut problems = Vec::new();
        let mut differs = |differs: bool, field: &str, value: String, help: &str| {
            if differs {
                let text = "the durable consumer differs from the profile";
                let problem = self.problem(codes::TOPOLOGY_MISMATCH, text, help);
                problems.push(problem.field(format!("consumer.{field}"), value));
            }
        };
        let filters = if real.filter_subject.is_empty() {
            real.filter_subjects.join(", ")
        } else {
            real.filter_subject.clone()
        };
        let help = "another destination's durable has this name: set native.durable";
        differs(filters != wanted.filter_subject, "filter_subject", filters.clone(), help);
        differs(
            real.deliver_subject.is_some(),
            "deliver_subject",
            "set".into(),
            "only pull consumers are used",
        );
        let explicit = real.ack_policy == AckPolicy::Explicit;
        differs(!explicit, "ack_policy", format!("{:?}", real.ack_policy), "use explicit");
        let wait = "it must be consumer.settlement_deadline";
        differs(real.ack_wait != wanted.ack_wait, "ack_wait", format!("{:?}", real.ack_wait), wait);
        let stuck = "use -1: a message that reaches the server's limit gets stuck";
        differs(real.max_deliver > 0, "max_deliver", real.max_deliver.to_string(), stuck);
        differs(!real.backoff.is_empty(), "backoff", "set".into(), "remove it: it replaces ack_wait");
        differs(real.headers_only, "headers_only", "true".into(), "payloads are needed");
        let expires = "remove it: the group's place would be forgotten";
        let threshold = real.inactive_threshold;
        differs(threshold > Duration::ZERO, "inactive_threshold", format!("{threshold:?}"), expires);
        let limited = real.max_batch > 0 || real.max_bytes > 0 || real.max_expires > Duration::ZERO;
        differs(limited, "max_batch, max_bytes or max_expires", "set".into(), "remove the limits on pulls");
        let grouped = real.priority_policy != PriorityPolicy::None;
        differs(
            grouped,
            "priority_policy",
            format!("{:?}", real.priority_policy),
            "priority groups are not used",
        );
        let pending = match self.ack_pending {
            _ if self.ordered => real.max_ack_pending != 1,
            Some(written) => real.max_ack_pending != written,
            None => false,
        };
        let help = if self.ordered { "an order needs 1" } else { "native.max_ack_pending differs" };
        differs(pending, "max_ack_pending", real.max_ack_pending.to_string(), help);
        if problems.is_empty() { Ok(()) } else { Err(TransportError::Refused(problems)) }
    }
}
