//! The graph of retries and dead letters.

use consign_core_api::Problem;
use consign_core_api::spi::RetryStrategy;
use consign_policy::topology::{EdgeKind, Graph};
use consign_policy::{ProfileSpec, ProfileSpecs, RetrySpec};
use proptest::prelude::*;

use super::support::{codes, name, plain, plan};

const NOTHING: [&str; 0] = [];

/// A profile with edges, as `retry` and `dead_letter` name them.
fn joined(retry: Option<&str>, dead_letter: Option<&str>) -> ProfileSpec {
    let mut spec = plain();
    if let Some(destination) = retry {
        spec = spec.retry(RetrySpec::to(destination));
    }
    spec.dead_letter = dead_letter.map(str::to_owned);
    spec
}

fn graph(edges: &[(&str, Option<&str>, Option<&str>)]) -> ProfileSpecs {
    edges.iter().fold(ProfileSpecs::new(), |all, (from, retry, dead)| all.with(*from, joined(*retry, *dead)))
}

fn problems(specs: &ProfileSpecs) -> Vec<Problem> {
    Graph::of(specs).problems()
}

fn topology_codes(specs: &ProfileSpecs) -> Vec<&'static str> {
    problems(specs).iter().map(|problem| problem.code().as_str()).collect()
}

#[test]
fn an_edge_to_nowhere_is_refused_with_its_field_and_name() {
    let specs = graph(&[("orders", Some("retry.gone"), Some("dead.gone"))]);
    assert_eq!(codes(&specs), ["UNREGISTERED_DESTINATION", "UNREGISTERED_DESTINATION"]);
    let found: Vec<_> = problems(&specs).iter().map(|problem| problem.fields().to_vec()).collect();
    assert_eq!(found[0], [("retry.destination".to_owned(), "retry.gone".to_owned())]);
    assert_eq!(found[1], [("dead_letter".to_owned(), "dead.gone".to_owned())]);
}

#[test]
fn a_retry_destination_that_is_not_used_must_exist_all_the_same() {
    let specs = ProfileSpecs::new()
        .with("orders", plain().retry(RetrySpec::new(RetryStrategy::InPlace).destination("nowhere")));
    assert_eq!(codes(&specs), ["RETRY_DESTINATION_UNUSED", "UNREGISTERED_DESTINATION"]);
}

/// Asserts that one circle is found, with this path, and that the whole validation reports it too.
fn circle(specs: &ProfileSpecs, path: &str) {
    let found = problems(specs);
    let circles: Vec<_> = found.iter().filter(|problem| problem.code() == "DESTINATION_CYCLE").collect();
    assert_eq!(circles.len(), 1, "{found:?}");
    assert!(circles[0].message().ends_with(&format!(": {path}")), "{}", circles[0]);
    assert!(codes(specs).contains(&"DESTINATION_CYCLE"));
}

#[test]
fn a_circle_is_refused_whatever_its_edges_and_printed_with_each_edges_kind() {
    circle(&graph(&[("a", None, Some("a"))]), "a -DEAD_LETTER-> a");
    circle(&graph(&[("a", Some("a"), None)]), "a -RETRY-> a");
    circle(&graph(&[("a", Some("b"), None), ("b", Some("a"), None)]), "a -RETRY-> b -RETRY-> a");
    circle(
        &graph(&[("a", None, Some("b")), ("b", None, Some("c")), ("c", None, Some("a"))]),
        "a -DEAD_LETTER-> b -DEAD_LETTER-> c -DEAD_LETTER-> a",
    );
    circle(
        &graph(&[("a", Some("b"), None), ("b", None, Some("c")), ("c", Some("a"), None)]),
        "a -RETRY-> b -DEAD_LETTER-> c -RETRY-> a",
    );
}

#[test]
fn a_circle_is_found_behind_a_way_in_and_named_without_it() {
    let specs = graph(&[("a", None, Some("b")), ("b", None, Some("c")), ("c", None, Some("b"))]);
    circle(&specs, "b -DEAD_LETTER-> c -DEAD_LETTER-> b");
    assert_eq!(codes(&specs), ["DESTINATION_CYCLE"]);
}

#[test]
fn each_edge_that_closes_a_circle_is_reported() {
    let specs = graph(&[
        ("a", None, Some("b")),
        ("b", None, Some("a")),
        ("c", None, Some("c")),
        ("d", None, Some("e")),
        ("e", None, None),
    ]);
    assert_eq!(codes(&specs), ["DESTINATION_CYCLE", "DESTINATION_CYCLE"]);
}

#[test]
fn a_circle_over_thousands_is_printed_in_part_and_counted() {
    let names: Vec<String> = (0..5000).map(|n| format!("d{n:05}")).collect();
    let specs = names.iter().enumerate().fold(ProfileSpecs::new(), |all, (n, from)| {
        all.with(from, joined(None, Some(&names[(n + 1) % names.len()])))
    });
    let found = problems(&specs);
    assert_eq!(found.len(), 1);
    let text = found[0].message();
    assert!(text.len() < 1000, "{text}");
    assert!(text.contains("d00000 -DEAD_LETTER-> d00001") && text.contains("(4984 more)"), "{text}");
    assert!(text.ends_with("d04999 -DEAD_LETTER-> d00000"), "{text}");
}

#[test]
fn dead_letters_may_be_shared_and_have_dead_letters() {
    let specs = graph(&[
        ("a", None, Some("dead")),
        ("b", None, Some("dead")),
        ("c", None, Some("dead")),
        ("dead", None, Some("dead.dead")),
        ("dead.dead", None, None),
    ]);
    assert_eq!(codes(&specs), NOTHING);
    let plan = plan(&specs).unwrap();
    let origins: Vec<_> =
        plan.dead_letter_origins(&name("dead")).iter().map(|origin| origin.as_str()).collect();
    assert_eq!(origins, ["a", "b", "c"]);
}

#[test]
fn a_ladder_of_retries_belongs_to_its_origin() {
    let specs = graph(&[
        ("orders", Some("orders.1"), Some("orders.dead")),
        ("orders.1", Some("orders.2"), None),
        ("orders.2", Some("orders.3"), None),
        ("orders.3", None, None),
        ("orders.dead", None, None),
    ]);
    assert_eq!(codes(&specs), NOTHING);
    let plan = plan(&specs).unwrap();
    let rungs: Vec<_> = plan.rungs(&name("orders")).iter().map(|rung| rung.as_str()).collect();
    assert_eq!(rungs, ["orders.1", "orders.2", "orders.3"]);
    for rung in ["orders.1", "orders.2", "orders.3"] {
        assert_eq!(plan.origin(&name(rung)).as_str(), "orders");
        assert!(plan.rungs(&name(rung)).is_empty());
        let profile = plan.profile(&name(rung)).unwrap();
        assert_eq!(profile.dead_letter().unwrap().as_str(), "orders.dead");
        assert_eq!(profile.setup().retry.max_attempts.unwrap().get(), 5);
    }
    assert_eq!(plan.origin(&name("orders")).as_str(), "orders");
    assert_eq!(plan.origin(&name("orders.dead")).as_str(), "orders.dead");
}

#[test]
fn a_retry_destination_belongs_to_one_origin() {
    let specs =
        graph(&[("a", Some("r"), None), ("b", Some("r"), None), ("c", Some("r"), None), ("r", None, None)]);
    assert_eq!(codes(&specs), ["RETRY_DESTINATION_SHARED"]);
    assert!(problems(&specs)[0].message().contains("b -RETRY-> r and 1 more"));
    let unused = plain().retry(RetrySpec::new(RetryStrategy::InPlace).destination("r"));
    let specs = graph(&[("a", Some("r"), None), ("r", None, None)]).with("b", unused);
    assert_eq!(codes(&specs), ["RETRY_DESTINATION_UNUSED"]);
}

#[test]
fn a_retry_destination_takes_no_dead_letters() {
    for specs in [
        graph(&[("a", Some("r"), None), ("b", None, Some("r")), ("r", None, None)]),
        graph(&[("a", Some("r"), Some("r")), ("r", None, None)]),
    ] {
        assert_eq!(codes(&specs), ["RETRY_DESTINATION_SHARED"]);
        assert!(problems(&specs)[0].message().contains("-DEAD_LETTER-> r"));
    }
}

#[test]
fn edges_are_listed_as_written() {
    let specs = graph(&[("a", Some("b"), Some("gone")), ("b", None, None)]);
    let edges: Vec<_> = Graph::of(&specs).edges().map(|edge| (edge.from, edge.kind, edge.to)).collect();
    assert_eq!(edges, [("a", EdgeKind::Retry, "b"), ("a", EdgeKind::DeadLetter, "gone")]);
}

/// Rungs of two, each node of a rung leading to both of the next: as many paths as two to the power of their number.
fn diamonds(rungs: usize) -> ProfileSpecs {
    (0..rungs).fold(ProfileSpecs::new(), |all, n| {
        let (left, right) = (format!("l{:05}", n + 1), format!("r{:05}", n + 1));
        let last = n + 1 == rungs;
        let edges = || if last { joined(None, None) } else { joined(Some(&left), Some(&right)) };
        all.with(format!("l{n:05}"), edges()).with(format!("r{n:05}"), edges())
    })
}

#[test]
fn a_ladder_of_diamonds_is_walked_once_and_has_no_circle() {
    assert!(!topology_codes(&diamonds(10_000)).contains(&"DESTINATION_CYCLE"));
}

#[test]
fn a_circle_through_a_ladder_of_diamonds_is_found_once_per_closing_edge() {
    let back = ProfileSpecs::new().with("l00049", joined(None, Some("l00000")));
    let specs = diamonds(50)
        .iter()
        .fold(back, |all, (from, spec)| if from == "l00049" { all } else { all.with(from, spec.clone()) });
    let circles = topology_codes(&specs).iter().filter(|code| **code == "DESTINATION_CYCLE").count();
    assert_eq!(circles, 1);
}

#[test]
fn a_circle_at_the_end_of_a_long_chain_is_found() {
    let specs = (0..20_000).fold(ProfileSpecs::new(), |all, n| {
        let next = if n == 19_999 { 19_998 } else { n + 1 };
        all.with(format!("d{n:05}"), joined(None, Some(&format!("d{next:05}"))))
    });
    circle(&specs, "d19998 -DEAD_LETTER-> d19999 -DEAD_LETTER-> d19998");
}

type Wires = Vec<(Option<usize>, Option<usize>)>;

fn wires() -> impl Strategy<Value = Wires> {
    (1_usize..9).prop_flat_map(|n| {
        let end = move || prop::option::of(0..n);
        prop::collection::vec((end(), end()), n)
    })
}

fn wired(wires: &Wires) -> ProfileSpecs {
    let at = |n: &Option<usize>| n.map(|n| format!("n{n}"));
    wires.iter().enumerate().fold(ProfileSpecs::new(), |all, (n, (retry, dead))| {
        all.with(format!("n{n}"), joined(at(retry).as_deref(), at(dead).as_deref()))
    })
}

/// Which node reaches which, the slow and obvious way.
fn closure(wires: &Wires) -> Vec<Vec<bool>> {
    let n = wires.len();
    let mut reaches = vec![vec![false; n]; n];
    for (from, (retry, dead)) in wires.iter().enumerate() {
        for to in retry.iter().chain(dead) {
            reaches[from][*to] = true;
        }
    }
    for via in 0..n {
        for from in 0..n {
            for to in 0..n {
                reaches[from][to] |= reaches[from][via] && reaches[via][to];
            }
        }
    }
    reaches
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn circles_are_found_exactly_where_a_node_reaches_itself(wires in wires()) {
        let reaches = closure(&wires);
        let specs = wired(&wires);
        let found = problems(&specs);
        let circles: Vec<_> = found.iter().filter(|problem| problem.code() == "DESTINATION_CYCLE").collect();
        let expected = (0..wires.len()).any(|n| reaches[n][n]);
        prop_assert_eq!(!circles.is_empty(), expected);
        prop_assert_eq!(codes(&specs).contains(&"DESTINATION_CYCLE"), expected);
        for circle in circles {
            let path = circle.message().rsplit(": ").next().unwrap();
            let steps: Vec<&str> = path.split(' ').collect();
            prop_assert_eq!(steps.first(), steps.last());
            for step in steps.windows(3).step_by(2) {
                let node = |text: &str| text[1..].parse::<usize>().unwrap();
                let (retry, dead) = wires[node(step[0])];
                let to = match step[1] { "-RETRY->" => retry, "-DEAD_LETTER->" => dead, odd => panic!("{odd}") };
                prop_assert_eq!(to, Some(node(step[2])));
            }
        }
    }

    #[test]
    fn removing_the_edges_that_close_circles_leaves_none(wires in wires()) {
        let mut left = wires.clone();
        for problem in problems(&wired(&wires)).iter().filter(|problem| problem.code() == "DESTINATION_CYCLE") {
            let (node, field) = problem.fields()[0].0.split_once('.').unwrap();
            let edges = &mut left[node[1..].parse::<usize>().unwrap()];
            if field == "dead_letter" { edges.1 = None } else { edges.0 = None }
        }
        let reaches = closure(&left);
        prop_assert!((0..left.len()).all(|n| !reaches[n][n]));
    }
}
