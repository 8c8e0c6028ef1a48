//! The simulated DHT.

use crate::support::run;

#[test]
fn a_simulated_network_reports_hops_success_and_times() {
    let sim = run(["dht", "sim", "--nodes", "60", "--seed", "7", "--lookups", "100", "--json"]);
    assert_eq!(sim.code, Some(0), "{}", sim.stderr);
    let events = sim.json();
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(
        (&event["event"], &event["nodes"], &event["seed"]),
        (&"dht-sim".into(), &60.into(), &7.into())
    );
    assert!(event["lookups"].as_u64().unwrap() > 40, "{event}");
    assert_eq!(event["success"], 1.0);
    let number = |field: &str| event[field].as_f64().unwrap();
    assert!((1.0..3.1).contains(&number("mean_hops")), "{event}");
    let times = ["median_ms", "p95_ms", "p99_ms"].map(number);
    assert!(times[0] >= 20.0 && times.is_sorted() && number("mean_ms") >= 20.0, "{event}");
    assert!(event["latency_model"].as_str().unwrap().contains("mean 30"));
    // The same seed, the same line.
    let again = run(["dht", "sim", "--nodes", "60", "--seed", "7", "--lookups", "100", "--json"]);
    assert_eq!(again.json(), events);
}

#[test]
fn a_share_that_is_none_is_wrong_usage() {
    for args in [["--churn", "2"], ["--adversaries", "lazy=0.1"], ["--nodes", "1"]] {
        let sim = run(["dht", "sim"].into_iter().chain(args));
        assert_eq!(sim.code, Some(2), "{}", sim.stderr);
    }
}
