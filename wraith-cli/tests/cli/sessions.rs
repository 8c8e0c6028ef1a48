//! Two processes and a session between them.

use std::net::UdpSocket;
use std::time::Duration;

use crate::support::{Listener, Running, program, run};

#[test]
fn ping_measures_round_trips_over_both_ip_versions() {
    for (bind, ip) in [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]"), ("::", "127.0.0.1")] {
        let listener = Listener::start(bind);
        let ping = run(["ping", "--json", "-c", "3", "-i", "1ms", "-s", "500", &listener.at(ip)]);
        assert_eq!(ping.code, Some(0), "{bind} {ip}: {}", ping.stderr);
        let events = ping.json();
        assert_eq!(events.len(), 4);
        for (index, pong) in events[..3].iter().enumerate() {
            assert_eq!((&pong["event"], &pong["seq"]), (&"pong".into(), &(index + 1).into()));
            assert!(pong["rtt_ms"].as_f64().unwrap() > 0.0);
        }
        let summary = &events[3];
        assert_eq!(summary["event"], "ping");
        assert_eq!(
            (&summary["sent"], &summary["received"], &summary["lost"]),
            (&3.into(), &3.into(), &0.into())
        );
        let [min, avg, median, max] =
            ["min_ms", "avg_ms", "median_ms", "max_ms"].map(|field| summary[field].as_f64().unwrap());
        assert!(min <= avg && avg <= max && min <= median && median <= max);
    }
}

#[test]
fn people_get_a_line_to_copy_and_messages_on_stderr_only() {
    let listener = Running::start(&mut program(["listen", "--bind", "127.0.0.1"]));
    assert!(listener.line().starts_with("listening on 127.0.0.1:"));
    let target = listener.line();
    let ping = run(["ping", "-c", "1", target.trim()]);
    assert_eq!(ping.code, Some(0), "{}", ping.stderr);
    assert!(ping.stdout[0].contains("seq 1"));
    assert!(ping.stdout[1].starts_with("1 sent, 1 received, 0 lost; ms: min "));
    assert_eq!(ping.stderr, "");
}

#[test]
fn a_listener_tells_programs_who_came_and_went() {
    let listener = Listener::start("127.0.0.1");
    let target = listener.at("127.0.0.1");
    assert_eq!(run(["ping", "-q", "-c", "1", &target]).code, Some(0));
    let connected = listener.process.event("connected");
    assert_eq!(connected["protocol"], "wraith-ping/1");
    let closed = listener.process.event("closed");
    assert_eq!((&closed["reason"], &closed["code"]), (&"closed by the peer".into(), &0.into()));
    assert_eq!((&closed["peer"], &closed["address"]), (&connected["peer"], &connected["address"]));
}

#[test]
fn another_identity_at_the_address_is_refused_in_one_clear_line() {
    let listener = Listener::start("127.0.0.1");
    let stranger = Listener::start("127.0.0.1");
    let ping = run(["ping", &format!("{}@127.0.0.1:{}", stranger.peer, listener.port)]);
    let expected = format!("another identity than {} answers at 127.0.0.1:{}", stranger.peer, listener.port);
    assert!(ping.error(1).starts_with(&expected), "{}", ping.stderr);
    assert!(ping.took < Duration::from_secs(4), "{:?}", ping.took);
}

#[test]
fn a_silent_address_is_given_up_after_the_time_of_the_handshake() {
    let listener = Listener::start("127.0.0.1");
    // Bound and never read: nobody answers, and nobody else gets the port.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ping = run(["ping", "--json", &format!("{}@{silent}", listener.peer)]);
    let message = ping.error(1);
    assert!(message.starts_with(&format!("no answer from {silent} within 5 s")), "{message}");
    assert_eq!(ping.json().last().unwrap(), &serde_json::json!({"event": "error", "message": message}));
    assert!((4..10).contains(&ping.took.as_secs()), "{:?}", ping.took);
}

#[test]
fn a_probe_that_does_not_fit_is_an_error_that_names_the_limit() {
    let listener = Listener::start("127.0.0.1");
    let ping = run(["ping", "-s", "1400", &listener.at("127.0.0.1")]);
    assert_eq!(ping.error(1), "a probe of 1400 bytes does not fit: use -s 1166 or less");
}

#[test]
fn an_address_of_the_wrong_family_is_wrong_usage() {
    let listener = Listener::start("127.0.0.1");
    let ping = run(["ping", "--bind", "::1", &listener.at("127.0.0.1")]);
    assert!(ping.error(2).contains("bind an IPv4 address"), "{}", ping.stderr);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_130_and_the_peer_learns_of_it() {
    let listener = Listener::start("127.0.0.1");
    let ping = Running::start(&mut program(["ping", "--json", "-i", "1m", &listener.at("127.0.0.1")]));
    ping.event("pong");
    ping.interrupt();
    let done = ping.finish();
    assert_eq!((done.code, done.stderr.as_str()), (Some(130), ""));
    assert_eq!(done.json()[0]["event"], "ping", "the summary is printed all the same");
    listener.process.event("connected");
    assert_eq!(listener.process.event("closed")["code"], 1);

    let ping = Running::start(&mut program(["ping", "--json", "-i", "1m", &listener.at("127.0.0.1")]));
    ping.event("pong");
    listener.process.interrupt();
    let listener = listener.process.finish();
    assert_eq!(
        (listener.code, listener.json().last().unwrap()["reason"].as_str()),
        (Some(130), Some("closed here"))
    );
    let done = ping.finish();
    assert!(done.error(1).contains("closed the session"), "{}", done.stderr);
}
