//! Benchmarks, short: that they count right, not how fast they are.

use serde_json::Value;
use wraith_proto::crypto::{CryptoProvider, RustCrypto};

use crate::support::{Listener, Running, program, run};

fn number(event: &Value, field: &str) -> f64 {
    event[field].as_f64().unwrap_or_else(|| panic!("{field} in {event}"))
}

fn count(event: &Value, field: &str) -> u64 {
    event[field].as_u64().unwrap_or_else(|| panic!("{field} in {event}"))
}

/// Asserts what holds of every result.
fn assert_consistent(event: &Value, packet_size: u32) {
    assert_eq!((&event["event"], &event["driver"]), (&"bench".into(), &"mio".into()));
    assert_eq!(event["packet_size"], packet_size);
    assert!(event["mode"].as_str().unwrap().starts_with("syscall"));
    assert_eq!(event["crypto"], if cfg!(feature = "accel") { "aws-lc" } else { "pure-rust" });
    let (packets, bytes) = (number(event, "received_packets"), number(event, "received_bytes"));
    assert!(packets > 0.0 && number(event, "lost") >= 0.0);
    let (seconds, gbps) = (number(event, "seconds"), number(event, "gbps"));
    assert!((gbps - bytes * 8.0 / seconds / 1e9).abs() < 1e-6);
    assert!((number(event, "pps") - packets / seconds).abs() < 1.0);
    #[cfg(target_os = "linux")]
    for field in ["cpu_tx", "cpu_rx"] {
        let share = number(event, field);
        assert!(share > 0.0 && share < 1.5, "{field} in {event}");
    }
}

#[test]
fn a_benchmark_counts_encrypted_datagrams_at_the_receiver_beside_the_bare_socket() {
    let bench = run(["bench", "--duration", "1s", "--json"]);
    assert_eq!(bench.code, Some(0), "{}", bench.stderr);
    let events = bench.json();
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_consistent(event, 1472);
    // Nothing was asked for: what this processor is best at.
    assert_eq!(event["suite"], RustCrypto.suites()[0].name());
    assert_eq!(event["kind"], "datagram");
    let seconds = number(event, "seconds");
    assert!(seconds > 0.5 && seconds < 5.0, "{event}");
    // Each packet is full: 1,472 bytes less 34 for header, frame and tag.
    assert_eq!(count(event, "received_bytes"), count(event, "received_packets") * 1438);
    let bare = number(event, "bare_gbps");
    assert!(bare > 0.0 && (number(event, "ratio_to_bare") - number(event, "gbps") / bare).abs() < 1e-6);
}

#[test]
fn a_stream_is_measured_beside_the_datagrams_over_ipv6() {
    let bench =
        run(["bench", "--stream", "--duration", "500ms", "--packet-size", "8192", "--json", "--bind", "::1"]);
    assert_eq!(bench.code, Some(0), "{}", bench.stderr);
    let events = bench.json();
    assert_eq!(events.iter().map(|event| &event["kind"]).collect::<Vec<_>>(), ["datagram", "stream"]);
    for event in &events {
        assert_consistent(event, 8192);
    }
}

#[test]
fn packets_smaller_than_every_path_carries_hold_one_datagram_each() {
    let bench = run(["bench", "--duration", "100ms", "--packet-size", "512", "--json"]);
    let events = bench.json();
    assert_consistent(&events[0], 512);
    assert_eq!(count(&events[0], "received_bytes"), count(&events[0], "received_packets") * (512 - 34));
}

#[test]
fn a_listener_counts_for_a_benchmark_in_another_process() {
    let listener = Listener::start("::");
    let bench = run(["bench", "--connect", &listener.at("127.0.0.1"), "--duration", "500ms", "--json"]);
    assert_eq!(bench.code, Some(0), "{}", bench.stderr);
    let event = &bench.json()[0];
    assert_consistent(event, 1472);
    assert_eq!((&event["bare_gbps"], &event["ratio_to_bare"]), (&Value::Null, &Value::Null));
    assert_eq!(listener.process.event("connected")["protocol"], "wraith-bench/1");
    assert_eq!(listener.process.event("closed")["code"], 0);
}

#[test]
fn a_suite_that_is_asked_for_is_used() {
    for (asked, used) in [("aes-256-gcm", "AES-256-GCM"), ("xchacha20-poly1305", "XChaCha20-Poly1305")] {
        let bench = run(["bench", "--duration", "100ms", "--json", "--suite", asked]);
        let event = &bench.json()[0];
        assert_consistent(event, 1472);
        assert_eq!(event["suite"], used);
    }
}

#[test]
fn without_a_common_suite_a_benchmark_is_refused() {
    let listener = Listener::start_with("127.0.0.1", &["--suite", "aes-256-gcm"]);
    let bench = run(["bench", "-q", "--connect", &listener.at("127.0.0.1"), "--suite", "xchacha20-poly1305"]);
    let message = bench.error(1);
    assert!(message.contains("refused the session"), "{message}");
    assert!(message.contains("give both the same `--suite`"), "{message}");
}

#[test]
fn people_get_a_table() {
    let bench = run(["bench", "-q", "--duration", "100ms"]);
    assert_eq!((bench.code, bench.stderr.as_str()), (Some(0), ""));
    let rows: Vec<_> = bench.stdout.iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(rows, ["driver", "Gbit/s", "datagram", "bare", "datagrams"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_benchmark_with_130_and_the_listener_learns_of_it() {
    let listener = Listener::start("127.0.0.1");
    let bench =
        Running::start(&mut program(["bench", "--connect", &listener.at("127.0.0.1"), "--duration", "1m"]));
    listener.process.event("connected");
    bench.interrupt();
    let done = bench.finish();
    assert_eq!((done.code, done.stdout.len()), (Some(130), 0));
    assert_eq!(listener.process.event("closed")["code"], 1);
}
