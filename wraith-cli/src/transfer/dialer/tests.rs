use std::collections::BTreeMap;
use std::net::SocketAddr;

use wraith_proto::{Budget, Config, Event, Identity, Limits, NoSource, OneShot, Progress};

use super::*;

fn endpoint() -> Endpoint {
    let mut config = Config::new(Identity::from_seed([1; 32]), b"test");
    config.limits = Limits { sessions: 3, ..Limits::client() };
    Endpoint::new(config, [1; 32], Instant::MIN).unwrap()
}

fn targets() -> [Target; 2] {
    let id = Identity::from_seed([2; 32]).peer_id();
    ["127.0.0.1:1", "127.0.0.1:2"].map(|addr| Target { id, addr: addr.parse().unwrap() })
}

fn at(millis: u64) -> Instant {
    Instant::MIN.saturating_add(Duration::from_millis(millis))
}

/// Nobody answers up to `end`; when dials to each port began, in milliseconds.
fn run(dialer: &mut Dialer, endpoint: &mut Endpoint, end: u64) -> BTreeMap<u16, Vec<u64>> {
    let (mut seen, mut begun) = (Vec::new(), BTreeMap::<u16, Vec<u64>>::new());
    let mut millis = 0;
    while millis < end {
        dialer.dial_due(at(millis), endpoint);
        for attempt in &dialer.running {
            if !seen.contains(&attempt.session) {
                seen.push(attempt.session);
                begun.entry(attempt.target.addr.port()).or_default().push(millis);
            }
        }
        while let Some((session, event)) = endpoint.poll_event() {
            if let Event::Closed(reason) = event {
                dialer.on_closed(at(millis), session, reason, endpoint);
            }
        }
        let Some(next) = dialer.wake_at() else { break };
        millis = (next.as_nanos() / 1_000_000).max(millis + 1);
    }
    begun
}

#[test]
fn addresses_are_dialled_once_each_and_then_the_dialer_has_failed() {
    let mut dialer = Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::ZERO);
    let begun = run(&mut dialer, &mut endpoint(), 60_000);
    assert_eq!(begun, [(1, vec![0]), (2, vec![250])].into());
    let failure = dialer.failure().unwrap().to_string();
    assert!(failure.starts_with("no answer from 127.0.0.1:1, 127.0.0.1:2"), "{failure}");
}

/// `PROTO §11.7`
#[test]
fn who_does_not_answer_is_dialled_again_after_ten_seconds_while_patience_lasts() {
    let mut dialer = Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::from_mins(1));
    let begun = run(&mut dialer, &mut endpoint(), 120_000);
    assert_eq!(begun[&1], [0, 10_250, 20_500, 30_750, 41_000, 51_250]);
    assert_eq!(begun[&2], [250, 10_500, 20_750, 31_000, 41_250, 51_500]);
    assert_eq!(dialer.take_silent().as_deref(), Some("127.0.0.1:1, 127.0.0.1:2"));
    let failure = dialer.failure().unwrap().to_string();
    assert!(failure.starts_with("no answer from 127.0.0.1:1, 127.0.0.1:2"), "{failure}");
}

/// `PROTO §11.7`
#[test]
fn however_long_the_patience_an_address_that_does_not_answer_is_dialled_ten_times() {
    for patience in [99, 100, 101, 3600] {
        let mut dialer =
            Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::from_secs(patience));
        let begun = run(&mut dialer, &mut endpoint(), 2 * patience * 1_000);
        assert!(begun[&1].len() <= 10 && begun[&1].len() >= 9, "{patience}: {begun:?}");
        let pauses = begun[&1].windows(2).map(|pair| pair[1] - pair[0]);
        assert!(pauses.min().unwrap() >= 10_000, "{begun:?}");
    }
}

/// Three datagrams leave for each dial (`PROTO §11.7`).
#[test]
fn a_dial_that_nobody_answers_takes_three_datagrams() {
    let mut dialer = Dialer::new(vec![targets()[0].into()], at(0), Duration::from_secs(15));
    let mut endpoint = endpoint();
    let mut left = Vec::new();
    for millis in 0..30_000 {
        dialer.dial_due(at(millis), &mut endpoint);
        while endpoint.handle_timeout(at(millis), Budget(8)) == Progress::More {}
        let mut buffer = [0; 1500];
        let mut queue = OneShot::new(&mut buffer);
        let _ = endpoint.poll_transmit(at(millis), &mut queue, &mut NoSource, Budget(1));
        left.extend(queue.take().map(|_| millis));
        while let Some((session, event)) = endpoint.poll_event() {
            if let Event::Closed(reason) = event {
                dialer.on_closed(at(millis), session, reason, &endpoint);
            }
        }
    }
    assert_eq!(left, [0, 250, 750, 10_000, 10_250, 10_750]);
}

#[test]
fn whoever_answers_with_another_identity_or_a_refusal_is_not_dialled_again() {
    for reason in [CloseReason::Refused, CloseReason::IdleTimeout] {
        let mut dialer = Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::from_mins(1));
        let mut endpoint = endpoint();
        dialer.dial_due(at(0), &mut endpoint);
        dialer.dial_due(at(250), &mut endpoint);
        let sessions: Vec<_> = dialer.running.iter().map(|attempt| attempt.session).collect();
        dialer.on_closed(at(900), sessions[0], reason, &endpoint);
        dialer.on_closed(at(900), sessions[1], CloseReason::HandshakeTimeout, &endpoint);
        let refused = reason == CloseReason::Refused;
        assert_eq!(dialer.failure().is_some(), refused);
        assert_eq!(dialer.wake_at(), (!refused).then(|| at(10_250)));
    }
}

/// `PROTO §11.8`
#[test]
fn who_was_lost_is_dialled_ever_more_seldom_and_other_addresses_once() {
    let [other, lost] = targets();
    let mut dialer = Dialer::new(vec![other.into(), lost.into()], at(0), Duration::from_mins(1));
    dialer.seek(lost, at(0));
    let begun = run(&mut dialer, &mut endpoint(), 30_000);
    assert_eq!(begun[&1], [250]);
    assert_eq!(begun[&2], [0, 2_250, 4_550, 7_450, 11_550, 18_050, 24_750]);
    assert!(dialer.failure().is_none());
    dialer.stop(at(30_000), &mut endpoint());
    assert!(dialer.wake_at().is_none());
}

/// `PROTO §11.8`
#[test]
fn other_addresses_are_dialled_once_however_often_a_peer_is_lost() {
    let [other, lost] = targets();
    let mut dialer = Dialer::new(vec![other.into(), lost.into()], at(0), Duration::from_mins(1));
    let mut dialled = Vec::new();
    for found_after in [200, 300, 300] {
        let mut endpoint = endpoint();
        dialer.seek(lost, at(0));
        let begun = run(&mut dialer, &mut endpoint, found_after);
        assert_eq!(begun[&2], [0]);
        dialled.push(begun.get(&1).map_or(0, Vec::len));
        dialer.stop(at(found_after), &mut endpoint);
    }
    assert_eq!(dialled, [0, 1, 0], "it was found before the other's turn, after it, and again");
}

/// Who is dialled within 250 ms; then `wins` answers and turns out to have nothing. Whether others are left.
fn disappoint(dialer: &mut Dialer, endpoint: &mut Endpoint, millis: u64, wins: u16) -> (Vec<u16>, bool) {
    for at_millis in [millis, millis + 250] {
        dialer.dial_due(at(at_millis), endpoint);
    }
    let ports = dialer.running.iter().map(|attempt| attempt.target.addr.port()).collect();
    let winner = dialer.running.iter().find(|attempt| attempt.target.addr.port() == wins).unwrap();
    let (winner, addr) = (winner.session, winner.target.addr);
    dialer.win(winner, at(millis + 251), endpoint).unwrap();
    endpoint.session(winner).unwrap().close(at(millis + 251), 0);
    while endpoint.poll_event().is_some() {}
    let id = Identity::from_seed([wins as u8; 32]).peer_id();
    (ports, dialer.pass_on(Target { id, addr }, at(millis + 252)))
}

/// `PROTO §11.7`, `§11.8`
#[test]
fn whose_dial_was_cut_short_by_a_peer_that_has_nothing_is_dialled_once_more_and_others_for_the_first_time() {
    let anybody = |port| Candidate { id: None, addr: format!("127.0.0.1:{port}").parse().unwrap() };
    let mut dialer = Dialer::new([1, 2, 3, 4].map(anybody).to_vec(), at(0), Duration::ZERO);
    let mut endpoint = endpoint();
    assert_eq!(disappoint(&mut dialer, &mut endpoint, 0, 1), (vec![1, 2], true));
    assert_eq!(disappoint(&mut dialer, &mut endpoint, 1_000, 3), (vec![2, 3], true));
    assert_eq!(disappoint(&mut dialer, &mut endpoint, 2_000, 4), (vec![4], false));
}

#[test]
fn other_addresses_of_a_peer_that_has_nothing_are_not_dialled() {
    let [first, second] = targets();
    let mut dialer = Dialer::new(vec![first.into(), second.into()], at(0), Duration::ZERO);
    let mut endpoint = endpoint();
    dialer.dial_due(at(0), &mut endpoint);
    let session = dialer.running[0].session;
    assert_eq!(dialer.win(session, at(10), &mut endpoint), Some(first.into()));
    assert!(!dialer.pass_on(first, at(20)) && dialer.wake_at().is_none());
}

#[test]
fn who_refuses_is_looked_for_no_longer() {
    let [_, lost] = targets();
    let mut dialer = Dialer::new(vec![lost.into()], at(0), Duration::from_mins(1));
    let mut endpoint = endpoint();
    dialer.seek(lost, at(0));
    dialer.dial_due(at(0), &mut endpoint);
    let session = dialer.running[0].session;
    dialer.on_closed(at(5), session, CloseReason::Refused, &endpoint);
    assert!(dialer.failure().unwrap().to_string().contains("refused the session"));
    assert!(dialer.wake_at().is_none());
}

fn anybody(port: u16) -> Candidate {
    Candidate { id: None, addr: SocketAddr::from(([127, 0, 0, 1], port)) }
}

/// `PROTO §11.7`
#[test]
fn who_is_named_is_dialled_at_once_and_again_only_when_named_again_after_ten_seconds_and_ten_times_at_most() {
    let mut dialer = Dialer::new(Vec::new(), at(0), Duration::from_mins(1));
    let mut endpoint = endpoint();
    let mut begun = Vec::new();
    for second in 0..200 {
        // A network names it every second.
        dialer.add(vec![anybody(7)], at(1_000 * second));
        for millis in (1_000 * second..1_000 * (second + 1)).step_by(50) {
            let dialled = dialer.running.len();
            dialer.dial_due(at(millis), &mut endpoint);
            if dialer.running.len() > dialled {
                begun.push(millis);
            }
            while let Some((session, event)) = endpoint.poll_event() {
                if let Event::Closed(reason) = event {
                    dialer.on_closed(at(millis), session, reason, &endpoint);
                }
            }
        }
    }
    assert_eq!(begun, (0..10).map(|round| 10_000 * round).collect::<Vec<_>>());
    assert!(dialer.has_tried() && dialer.is_idle());
    let failure = dialer.failure().unwrap().to_string();
    assert!(failure.starts_with("no answer from 127.0.0.1:7: check"), "{failure}");
}

#[test]
fn who_is_named_beside_the_given_addresses_neither_waits_for_their_round_nor_is_dialled_twice_in_it() {
    let mut dialer = Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::from_mins(1));
    let mut endpoint = endpoint();
    let first = run(&mut dialer, &mut endpoint, 5_000);
    assert_eq!(first, [(1, vec![0]), (2, vec![250])].into());
    dialer.add(vec![anybody(1), anybody(3)], at(5_000));
    dialer.dial_due(at(5_000), &mut endpoint);
    let ports: Vec<_> = dialer.running.iter().map(|attempt| attempt.target.addr.port()).collect();
    assert_eq!(ports, [3], "the first one has its next round to come");
}

#[test]
fn of_more_addresses_than_sixty_four_and_four_of_one_machine_no_more_are_dialled() {
    let mut dialer = Dialer::new(Vec::new(), at(0), Duration::from_mins(1));
    let mut endpoint = endpoint();
    dialer.add((1..200).map(anybody).collect(), at(0));
    let begun = run(&mut dialer, &mut endpoint, 600_000);
    assert_eq!(begun.len(), named::MOST_OF_IP);
    dialer.add((1..200).map(anybody).collect(), at(700_000));
    let again = run(&mut dialer, &mut endpoint, 600_000);
    assert!(again.keys().all(|port| begun.contains_key(port)), "{again:?}");
    let elsewhere = |port| Candidate { id: None, addr: SocketAddr::from(([127, 0, 1, port as u8], port)) };
    dialer.add((200..300).map(elsewhere).collect(), at(700_000));
    assert_eq!(run(&mut dialer, &mut endpoint, 600_000).len(), named::MOST - named::MOST_OF_IP);
}

/// `PROTO §11.8`
#[test]
fn who_was_named_while_a_source_served_is_dialled_when_it_is_lost_or_has_nothing() {
    for is_lost in [true, false] {
        let [first, _] = targets();
        let mut dialer = Dialer::new(vec![first.into()], at(0), Duration::from_mins(1));
        let mut endpoint = endpoint();
        dialer.dial_due(at(0), &mut endpoint);
        let session = dialer.running[0].session;
        assert_eq!(dialer.win(session, at(10), &mut endpoint), Some(first.into()));
        dialer.keep(vec![anybody(5), anybody(5)]);
        endpoint.session(session).unwrap().close(at(20), 0);
        while endpoint.poll_event().is_some() {}
        if is_lost {
            dialer.seek(first, at(20));
        } else {
            assert!(dialer.pass_on(first, at(20)));
        }
        dialer.dial_due(at(20), &mut endpoint);
        let mut ports: Vec<_> = dialer.running.iter().map(|attempt| attempt.target.addr.port()).collect();
        ports.sort_unstable();
        assert_eq!(ports, if is_lost { vec![1, 5] } else { vec![5] });
    }
}
