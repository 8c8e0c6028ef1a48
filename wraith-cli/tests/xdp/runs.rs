//! Runs that make their own devices, and what is told about drivers.

use serde_json::Value;

use crate::hosts::{plain_hosts, run_on, start_on, xdp};
use crate::support::{program, run};

#[test]
fn the_demo_shows_a_verified_transfer_on_devices_of_its_own() {
    if plain_hosts().is_none() {
        return;
    }
    for args in [
        &["--driver", "xdp"][..],
        &["--driver", "xdp", "--xdp-generic", "--bind", "::"],
        &["--driver", "mio", "--veth"],
    ] {
        let end = run(["demo", "--json", "--size", "16MiB"].iter().chain(args));
        assert_eq!((end.code, &*end.stderr), (Some(0), ""), "{:?}", end.stdout);
        let done = end.json().pop().unwrap();
        assert_eq!((done["event"].as_str(), done["bytes"].as_u64()), (Some("done"), Some(16 << 20)));
        assert_eq!((done["verified"].as_bool(), done["driver"].as_str()), (Some(true), Some(args[1])));
    }
}

#[test]
fn benchmarks_run_on_devices_of_their_own_beside_the_bare_driver() {
    if plain_hosts().is_none() {
        return;
    }
    let uring = cfg!(feature = "io-uring").then_some((&["--veth", "--driver", "uring"][..], "uring"));
    let runs = [
        (&["--driver", "xdp"][..], "xdp-native-copy"),
        (&["--veth", "--driver", "xdp", "--xdp-generic", "--bind", "::"], "xdp-generic-copy"),
        (&["--veth", "--driver", "mio"], "syscall-gso"),
    ];
    for (args, mode) in runs.into_iter().chain(uring) {
        let bench =
            run(["bench", "--json", "--duration", "300ms", "--packet-size", "512"].iter().chain(args));
        assert_eq!(bench.code, Some(0), "{}", bench.stderr);
        let event = &bench.json()[0];
        assert_eq!((event["event"].as_str(), event["mode"].as_str()), (Some("bench"), Some(mode)));
        let count = |field: &str| event[field].as_u64().unwrap();
        assert!(count("received_packets") > 0, "{event}");
        assert_eq!(count("received_bytes"), count("received_packets") * (512 - 34));
        assert!(event["bare_pps"].as_f64().unwrap() > 0.0, "{event}");
    }
}

/// IPv6 takes 20 bytes more of a packet than IPv4, for which the default is.
#[test]
fn a_packet_that_the_devices_do_not_carry_is_refused_with_the_remedy() {
    if plain_hosts().is_none() {
        return;
    }
    let bench = run(["bench", "-q", "--driver", "xdp", "--bind", "::"]);
    let message =
        "packets of 1472 bytes are longer than the driver xdp carries here: use --packet-size 1452 or less";
    assert_eq!(bench.error(1), message);
}

#[test]
fn a_listener_on_a_device_answers_pings_and_benchmarks_at_its_addresses() {
    let Some(veth) = plain_hosts() else { return };
    let mut command = program(["listen", "--json"]);
    command.args(xdp(veth.left()));
    let listener = start_on(veth.left(), command);
    let listening = listener.event("listening");
    assert_eq!(
        (listening["driver"].as_str(), listening["mode"].as_str()),
        (Some("xdp"), Some("xdp-native-copy"))
    );
    let port = listening["address"].as_str().unwrap().rsplit_once(':').unwrap().1;
    let addresses = [format!("{}:{port}", veth.left().ipv4()), format!("[{}]:{port}", veth.left().ipv6())];
    assert_eq!(listening["addresses"], Value::from(addresses.to_vec()));
    for address in addresses {
        let target = format!("{}@{address}", listening["peer"].as_str().unwrap());
        let args = ["ping", "--json", "-c", "3", "-i", "10ms", &target];
        let ping = run_on(veth.right(), args.into_iter().chain(xdp(veth.right())));
        assert_eq!(ping.json().pop().unwrap()["received"], 3, "{}", ping.stderr);
        let args = ["bench", "--json", "--duration", "200ms", "--packet-size", "1452", "--connect", &target];
        let bench = run_on(veth.right(), args.into_iter().chain(xdp(veth.right())));
        assert_eq!(bench.code, Some(0), "{}", bench.stderr);
        assert_eq!(bench.json()[0]["mode"], "xdp-native-copy");
    }
}

fn row(rows: &[Value]) -> &Value {
    rows.iter().find(|row| row["driver"] == "xdp").unwrap()
}

#[test]
fn the_list_says_what_the_driver_can_do_on_a_device_and_on_one_of_its_own() {
    let Some(veth) = plain_hosts() else { return };
    let there = run_on(veth.left(), ["drivers", "--json", "--interface", "wraith0"]).json();
    let there = row(&there);
    assert_eq!((&there["available"], &there["mode"]), (&true.into(), &"xdp-native-copy".into()));
    assert_eq!((&there["max_datagram"], &there["ecn"]), (&1472.into(), &true.into()));
    let generic =
        run_on(veth.left(), ["drivers", "--json", "--interface", "wraith0", "--xdp-generic"]).json();
    assert_eq!(row(&generic)["mode"], "xdp-generic-copy");
    let missing = run_on(veth.left(), ["drivers", "--json", "--interface", "wraith9"]).json();
    let missing = row(&missing);
    assert_eq!((&missing["available"], &missing["mode"]), (&false.into(), &Value::Null));
    assert!(
        missing["reason"].as_str().unwrap().starts_with("the network device: no such device"),
        "{missing}"
    );

    let own = run(["drivers", "--json"]).json();
    let own = row(&own);
    assert_eq!((&own["available"], &own["mode"]), (&true.into(), &"xdp-native-copy".into()));
    let note = "tried on a pair of virtual devices of its own: name a device with --interface";
    assert!(own["reason"].as_str().unwrap().ends_with(note), "{own}");
}
