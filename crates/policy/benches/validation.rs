//! How long validation takes for many destinations, and whether it is linear.
//!
//! First prints, for each shape, the time for 20,000 destinations over that for 10,000, measured in the same run: the
//! two alternate, and the fastest of each counts. Then runs the usual benchmarks.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use consign_core_api::capability::{HeaderModel, Ordering};
use consign_core_api::spi::{ConnectContext, Connection, DestinationSetup, Transport, TransportError};
use consign_core_api::{
    Capabilities, Capability, CapabilityUnavailable, DeliveryGuarantee, OrderingScope, Problem,
    SettlementLevel, TransportName,
};
use consign_policy::topology::Graph;
use consign_policy::{Catalog, ProfileSpec, ProfileSpecs, RetrySpec, plan};
use divan::Bencher;

/// Does nothing but answer.
struct Silent;

#[async_trait]
impl Transport for Silent {
    fn kind(&self) -> &'static str {
        "silent"
    }

    fn validate(&self, _: &DestinationSetup) -> Vec<Problem> {
        Vec::new()
    }

    fn capabilities(&self, _: &DestinationSetup) -> Capabilities {
        Capabilities::builder(Ordering::Unordered("".into()))
            .native(Capability::PublishConfirmation, "")
            .native(Capability::IndividualSettlement, "")
            .native(Capability::ConsumerFlowControl, "")
            .settlement_level(SettlementLevel::Committed)
            .headers(HeaderModel::FULL)
            .tombstones(true)
            .build()
    }

    async fn connect(&self, _: ConnectContext) -> Result<Arc<dyn Connection>, TransportError> {
        Err(TransportError::Unavailable(CapabilityUnavailable::new("connecting", "this is no broker")))
    }
}

fn catalog() -> Catalog {
    let name = TransportName::new("main").unwrap_or_else(|_| unreachable!("the name is legal"));
    Catalog::new().transport(name, Arc::new(Silent))
}

fn profile() -> ProfileSpec {
    ProfileSpec::new("main", DeliveryGuarantee::AtLeastOnce, OrderingScope::None)
}

fn named(n: usize) -> String {
    format!("destination.{n:06}")
}

fn build(count: usize, spec: impl Fn(usize) -> ProfileSpec) -> ProfileSpecs {
    (0..count).fold(ProfileSpecs::new(), |all, n| all.with(named(n), spec(n)))
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Dead letters in pairs: an origin and what takes its failures.
    Pairs,
    /// Each destination's dead letter is the next one, and the last has none.
    Chain,
    /// All share one dead letter.
    Star,
    /// Origins with a retry destination each, and one dead letter for all.
    Retries,
    /// Both destinations of a rung lead to both of the next: as many paths as two to the power of the rungs. Not
    /// legal, because retry destinations are shared: the report is as long as the ladder.
    Diamonds,
    /// A chain whose last destination leads to the one before.
    LateCycle,
}

const SHAPES: [Shape; 6] =
    [Shape::Pairs, Shape::Chain, Shape::Star, Shape::Retries, Shape::Diamonds, Shape::LateCycle];

impl Shape {
    fn specs(self, count: usize) -> ProfileSpecs {
        let last = count - 1;
        build(count, |n| match self {
            Self::Pairs if n % 2 == 0 => profile().dead_letter(named(n + 1)),
            Self::Chain if n < last => profile().dead_letter(named(n + 1)),
            Self::Star if n > 0 => profile().dead_letter(named(0)),
            Self::Retries if n % 2 == 1 && n < last => {
                profile().retry(RetrySpec::to(named(n + 1))).dead_letter(named(0))
            }
            Self::Diamonds if n / 2 < last / 2 => {
                let next = n / 2 * 2 + 2;
                profile().retry(RetrySpec::to(named(next))).dead_letter(named(next + 1))
            }
            Self::LateCycle => profile().dead_letter(named(if n < last { n + 1 } else { n - 1 })),
            _ => profile(),
        })
    }
}

fn main() {
    for shape in SHAPES {
        print_ratio(&format!("plan, {shape:?}"), shape, |specs, catalog| {
            let _ = black_box(plan(specs, catalog));
        });
    }
    for shape in [Shape::Diamonds, Shape::LateCycle] {
        print_ratio(&format!("graph alone, {shape:?}"), shape, |specs, _| {
            black_box(Graph::of(specs).problems());
        });
    }
    divan::main();
}

/// Measures the time on the processor where the system tells it, so that a busy machine does not show; else wall time.
struct Stopwatch(Result<Duration, Instant>);

impl Stopwatch {
    fn start() -> Self {
        Self(Self::on_processor().ok_or_else(Instant::now))
    }

    fn elapsed(&self) -> Duration {
        match self.0 {
            Ok(start) => Self::on_processor().unwrap_or(Duration::MAX).saturating_sub(start),
            Err(start) => start.elapsed(),
        }
    }

    fn on_processor() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }
}

/// How often one measurement runs: the system tells the time on the processor in steps of some milliseconds.
const AT_ONCE: u32 = 10;

/// Measures 10,000 and 20,000 destinations in turns.
fn print_ratio(what: &str, shape: Shape, run: impl Fn(&ProfileSpecs, &Catalog)) {
    let catalog = catalog();
    let sizes = [10_000, 20_000].map(|count| shape.specs(count));
    let mut fastest = [Duration::MAX; 2];
    for _ in 0..10 {
        for (specs, fastest) in sizes.iter().zip(&mut fastest) {
            let start = Stopwatch::start();
            for _ in 0..AT_ONCE {
                run(specs, &catalog);
            }
            *fastest = (start.elapsed() / AT_ONCE).min(*fastest);
        }
    }
    let [half, whole] = fastest;
    let problems = plan(&sizes[1], &catalog).err().map_or(0, |report| report.problems().len());
    println!(
        "{what}: 10,000 in {half:.2?}, 20,000 in {whole:.2?}, ratio {:.2}; {problems} problems",
        whole.as_secs_f64() / half.as_secs_f64()
    );
}

#[divan::bench(args = SHAPES, consts = [1_000, 10_000, 20_000], sample_count = 20)]
fn whole_plan<const COUNT: usize>(bencher: Bencher<'_, '_>, shape: Shape) {
    let (specs, catalog) = (shape.specs(COUNT), catalog());
    bencher.bench_local(|| plan(black_box(&specs), &catalog));
}

#[divan::bench(args = SHAPES, consts = [1_000, 10_000, 20_000], sample_count = 20)]
fn graph_alone<const COUNT: usize>(bencher: Bencher<'_, '_>, shape: Shape) {
    let specs = shape.specs(COUNT);
    bencher.bench_local(|| Graph::of(black_box(&specs)).problems());
}
