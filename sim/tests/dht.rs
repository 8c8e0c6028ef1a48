//! Networks of DHT nodes: what is stored is found, and how soon.

use wraith_sim::dht::{Adversaries, Plan, Report, run};

const PLAN: Plan = Plan {
    nodes: 100,
    seed: 1,
    lookups: 500,
    churn: 0.0,
    adversaries: Adversaries { silent: 0.0, lying: 0.0, flooding: 0.0 },
};

/// The targets: mean steps and milliseconds at most, and nothing lost.
fn assert_within(report: &Report, hops: f64, millis: f64) {
    assert!(report.lookups > 300, "{report:?}");
    assert_eq!(report.found, report.lookups);
    assert!((1.0..=hops).contains(&report.mean_hops()), "{}", report.mean_hops());
    assert!((20.0..=millis).contains(&report.mean_ms()), "{}", report.mean_ms());
    assert!(report.quantile_ms(0.5) <= report.quantile_ms(0.95) && report.quantile_ms(0.5) >= 20.0);
}

#[test]
fn a_hundred_nodes_find_what_they_store() {
    let report = run(&PLAN);
    assert_within(&report, 3.1, 82.0);
    assert!((60..170).contains(&report.estimated_nodes), "{}", report.estimated_nodes);
    assert!(report.mean_copies >= 20.0, "{}", report.mean_copies);
}

#[test]
fn a_thousand_nodes_find_what_they_store() {
    let report = run(&Plan { nodes: 1_000, ..PLAN });
    assert_within(&report, 4.2, 183.0);
    assert!((600..1_700).contains(&report.estimated_nodes), "{}", report.estimated_nodes);
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let plan = Plan { nodes: 50, lookups: 20, ..PLAN };
    assert_eq!(run(&plan), run(&plan));
    assert_ne!(run(&plan), run(&Plan { seed: 2, ..plan }));
}

#[test]
fn lookups_succeed_though_half_of_the_nodes_are_replaced_within_the_hour() {
    let report = run(&Plan { nodes: 200, lookups: 200, churn: 0.5, ..PLAN });
    assert!(report.lookups > 100 && report.success() >= 0.99, "{} of {}", report.found, report.lookups);
}

#[test]
fn lookups_succeed_among_a_fifth_of_adversaries() {
    let adversaries = Adversaries { silent: 0.07, lying: 0.07, flooding: 0.06 };
    let report = run(&Plan { nodes: 500, lookups: 300, adversaries, ..PLAN });
    assert!(report.lookups > 200 && report.success() >= 0.99, "{} of {}", report.found, report.lookups);
}
