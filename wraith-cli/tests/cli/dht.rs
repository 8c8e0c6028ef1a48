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
fn runs_are_kept_as_lines_of_a_table_and_as_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let [table, picture] = ["runs.csv", "run.svg"].map(|name| folder.path().join(name));
    for nodes in ["40", "50"] {
        let args = ["dht", "sim", "--lookups", "50", "--loss", "0.01", "--json", "--nodes", nodes, "--csv"];
        let files = [table.to_str().unwrap(), "--svg", picture.to_str().unwrap()];
        let sim = run(args.into_iter().chain(files));
        assert_eq!(sim.code, Some(0), "{}", sim.stderr);
        let lines = std::fs::read_to_string(&table).unwrap();
        let names = lines.lines().next().unwrap();
        assert!(names.starts_with("event,nodes,seed,lookups,mean_hops,success,mean_ms,"), "{names}");
        let row = lines.lines().last().unwrap();
        assert!(row.starts_with(&format!("dht-sim,{nodes},1,")), "{row}");
        // The model has a comma in it.
        assert_eq!(row.matches('"').count(), 2, "{row}");
        assert!(row.ends_with(&sim.json()[0]["virtual_seconds"].to_string()), "{row}");
    }
    assert_eq!(std::fs::read_to_string(&table).unwrap().lines().count(), 3);
    let picture = std::fs::read_to_string(&picture).unwrap();
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"));
    for text in ["50 nodes, seed 1", "ms, 10 a bar", "hops", "lookups"] {
        assert!(picture.contains(text), "{text}");
    }
    assert!(picture.matches("<rect ").count() > 5);
    let nowhere = run(["dht", "sim", "--nodes", "2", "--svg", "/nowhere/run.svg"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(nowhere.stderr.contains("cannot write /nowhere/run.svg"), "{}", nowhere.stderr);
}

#[test]
fn without_lookups_all_that_is_counted_of_them_is_zero() {
    // Both nodes keep every value, so none has anything to look up.
    let sim = run(["dht", "sim", "--nodes", "2", "--lookups", "3", "--json"]);
    assert_eq!(sim.code, Some(0), "{}", sim.stderr);
    for field in ["\"lookups\":0,", "\"mean_hops\":0.0,", "\"mean_ms\":0.0,"] {
        assert!(sim.stdout[0].contains(field), "{field}: {:?}", sim.stdout);
    }
}

#[test]
fn a_share_that_is_none_is_wrong_usage() {
    for args in [
        ["--churn", "2"],
        ["--loss", "-0.1"],
        ["--ipv6", "x"],
        ["--adversaries", "lazy=0.1"],
        ["--nodes", "1"],
    ] {
        let sim = run(["dht", "sim"].into_iter().chain(args));
        assert_eq!(sim.code, Some(2), "{}", sim.stderr);
    }
}
