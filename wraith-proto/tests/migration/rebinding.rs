//! Addresses that change without the end behind them knowing.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use wraith_proto::wire::HandshakeKind;
use wraith_proto::{Congestion, Event, Outcome};
use wraith_sim::{LEFT, Pair, PairConfig, RIGHT, Side, Verdict};

use crate::bulk::Bulk;
use crate::support::{Mobile, ONE_WAY, SECOND, SMALL, Sent, elsewhere, line, millis, next_port};

const MEGABYTE: u64 = 1 << 20;
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// Sends from `from`, moves the left end to `to` in the middle, and finishes; returns the longest gap in what arrives
/// after the move.
fn transfer_with_a_move(mobile: &mut Mobile, from: Side, to: SocketAddr) -> Duration {
    let receiver = if from == Side::Left { Side::Right } else { Side::Left };
    mobile.send(from, 4 * MEGABYTE);
    mobile.run_until_received(receiver, MEGABYTE, 5 * SECOND);
    mobile.take_sent();
    mobile.pair.rebind(Side::Left, to);
    let mut gap = Duration::ZERO;
    while mobile.received(receiver) < 4 * MEGABYTE {
        let before = mobile.received(receiver);
        gap = gap.max(mobile.run_until_received(receiver, before + 1, 5 * SECOND));
    }
    mobile.finish(from, 1, SECOND);
    assert_eq!(mobile.received(receiver), 4 * MEGABYTE, "each byte once");
    gap
}

/// `PROTO §13.3`, `PROTO §13.8`: the mover sends.
#[test]
fn a_transfer_goes_on_when_the_senders_port_changes() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        let mut mobile =
            Mobile::with(1, line(), |config| config.transport = config.transport.with_congestion(congestion));
        let gap = transfer_with_a_move(&mut mobile, Side::Left, next_port());
        assert_eq!(mobile.remote(Side::Right), next_port());
        assert_eq!(mobile.checks(Side::Right), [1, 1, 0]);
        assert_eq!(mobile.checks(Side::Left), [0, 0, 0]);
        let (right, left) = (&mobile.pair.right.host, &mobile.pair.left.host);
        assert_eq!((right.count(Event::PathChanged), left.count(Event::PathChanged)), (1, 0));
        assert!(gap <= 2 * ROUND_TRIP, "{congestion:?}: nothing arrived for {gap:?}");
    }
}

/// `PROTO §13.3`, `PROTO §13.8`: the mover receives, and nothing but an acknowledgement says so.
#[test]
fn a_transfer_goes_on_when_the_receivers_port_changes() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        let mut mobile =
            Mobile::with(2, line(), |config| config.transport = config.transport.with_congestion(congestion));
        let gap = transfer_with_a_move(&mut mobile, Side::Right, next_port());
        assert_eq!((mobile.remote(Side::Right), mobile.checks(Side::Right)), (next_port(), [1, 1, 0]));
        // The delayed acknowledgement, one way; the challenge and its answer; one way; what the queue holds.
        let longest = millis(25) + 4 * ONE_WAY + millis(40);
        assert!(gap <= longest, "{congestion:?}: nothing arrived for {gap:?}");
    }
}

/// `PROTO §13.3`: either role may move.
#[test]
fn a_transfer_goes_on_when_the_answering_end_moves() {
    for from in [Side::Left, Side::Right] {
        let mut mobile = Mobile::new(3);
        let receiver = if from == Side::Left { Side::Right } else { Side::Left };
        mobile.send(from, 4 * MEGABYTE);
        mobile.run_until_received(receiver, MEGABYTE, 5 * SECOND);
        mobile.pair.rebind(Side::Right, elsewhere());
        mobile.finish(from, 1, 5 * SECOND);
        assert_eq!((mobile.remote(Side::Left), mobile.checks(Side::Left)), (elsewhere(), [1, 1, 0]));
    }
}

/// `PROTO §13.7`: behind the same address round trip, window and datagram size stay.
#[test]
fn another_port_keeps_what_is_known_of_the_path() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        let mut mobile = Mobile::with(4, line().with_mtu(1472), |config| {
            config.transport = config.transport.with_congestion(congestion).with_mtu_search(true);
        });
        mobile.send(Side::Right, 8 * MEGABYTE);
        mobile.run_until_received(Side::Left, MEGABYTE, 5 * SECOND);
        let before = mobile.session(Side::Right).stats();
        mobile.pair.rebind(Side::Left, next_port());
        mobile.session(Side::Left).ping().expect("it is open");
        mobile.pair.run_until(|pair| pair.right.host.count(Event::PathChanged) > 0, SECOND);
        let after = mobile.session(Side::Right).stats();
        assert_eq!((before.datagram_size, after.datagram_size), (1472, 1472));
        assert!(after.congestion_window >= before.congestion_window, "{before:?} {after:?}");
        assert!(after.rtt < before.rtt * 2 && after.min_rtt == before.min_rtt);
        mobile.finish(Side::Right, 1, 5 * SECOND);
    }
}

/// `PROTO §13.8`: what got lost on the way to where the peer no longer was is no congestion.
#[test]
fn losses_between_a_move_and_its_discovery_do_not_shrink_the_window() {
    let mut mobile = Mobile::with(5, line(), |config| {
        config.transport = config.transport.with_congestion(Congestion::Cubic);
    });
    mobile.send(Side::Right, 16 * MEGABYTE);
    mobile.run_until_received(Side::Left, MEGABYTE / 4, 5 * SECOND);
    let mut window = mobile.session(Side::Right).stats().congestion_window;
    let mut fell = false;
    let before = mobile.stats(Side::Right).packets_lost;
    mobile.pair.rebind(Side::Left, next_port());
    // Challenges that are acknowledged let what got lost before them be noticed, while the check cannot succeed.
    mobile.drop_if(Sent::is_response);
    for _ in 0..20 {
        mobile.session(Side::Left).ping().expect("it is open");
        mobile.pair.run_for(millis(5));
        let now = mobile.session(Side::Right).stats().congestion_window;
        fell |= now < window;
        window = window.max(now);
    }
    mobile.drop_if(|_| false);
    mobile.pair.run_until(|pair| pair.right.host.count(Event::PathChanged) > 0, SECOND);
    let after = mobile.session(Side::Right).stats();
    assert!(fell && mobile.stats(Side::Right).packets_lost > before, "the test sees losses");
    assert!(after.congestion_window >= window, "{window} then {}", after.congestion_window);
    mobile.finish(Side::Right, 1, 10 * SECOND);
}

/// `PROTO §13.7`: another host's path begins from nothing but the round trip of its check.
#[test]
fn another_address_resets_what_was_known_of_the_path() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        let mut mobile = Mobile::with(6, line().with_mtu(1472), |config| {
            config.transport = config.transport.with_congestion(congestion).with_mtu_search(true);
        });
        mobile.send(Side::Right, 8 * MEGABYTE);
        mobile.run_until_received(Side::Left, MEGABYTE, 5 * SECOND);
        let before = mobile.session(Side::Right).stats();
        assert!(before.congestion_window > 20_000 && before.datagram_size == 1472, "{before:?}");
        let changes = mobile.pair.right.host.count(Event::MaxDatagramChanged);
        mobile.pair.rebind(Side::Left, elsewhere());
        mobile.pair.run_until(|pair| pair.right.host.count(Event::PathChanged) > 0, SECOND);
        let after = mobile.session(Side::Right).stats();
        assert_eq!(
            (after.congestion_window, after.datagram_size, after.congestion_events),
            (12_000, 1200, 0)
        );
        let rtt = after.rtt;
        assert!(rtt >= 2 * ONE_WAY && rtt < 3 * ONE_WAY && after.min_rtt == rtt, "{rtt:?}");
        assert_eq!(mobile.pair.right.host.count(Event::MaxDatagramChanged), changes + 1);
        mobile.finish(Side::Right, 1, 5 * SECOND);
        assert_eq!(mobile.session(Side::Right).stats().datagram_size, 1472, "it is searched for again");
    }
}

/// `PROTO §13.1`: an IPv4 address in IPv6 form is the same address.
#[test]
fn an_address_in_another_spelling_is_no_other_address() {
    let mut mobile = Mobile::new(7);
    mobile.session(Side::Left).ping().expect("it is open");
    mobile.drop_if(|sent| sent.sender == 0);
    mobile.pair.run_for(millis(1));
    let ping = mobile.take_sent().remove(0);
    let mapped: SocketAddr = "[::ffff:192.0.2.1]:40001".parse().expect("an address");
    assert!(matches!(mobile.pair.inject(Side::Right, mapped, &ping.bytes), Outcome::Authenticated(_)));
    mobile.drop_if(|_| false);
    mobile.pair.run_for(SECOND);
    assert_eq!((mobile.checks(Side::Right), mobile.remote(Side::Right)), ([0, 0, 0], LEFT));
}

/// `PROTO §13.4`: an idle session's keep-alive of 40 bytes is answered with challenges that it pays for.
#[test]
fn a_keep_alive_from_another_address_moves_the_session() {
    for to in [next_port(), elsewhere()] {
        let mut mobile = Mobile::new(8);
        mobile.pair.rebind(Side::Left, to);
        mobile.session(Side::Left).ping().expect("it is open");
        mobile.pair.run_until(|pair| pair.right.host.count(Event::PathChanged) > 0, SECOND);
        assert_eq!((mobile.remote(Side::Right), mobile.checks(Side::Right)), (to, [1, 1, 0]));
        let sent = mobile.take_sent();
        let now = mobile.pair.now();
        let bytes = |sent: &[&Sent]| sent.iter().map(|sent| sent.bytes.len()).sum::<usize>();
        let came: Vec<_> = sent.iter().filter(|sent| sent.sender == 0).collect();
        let went: Vec<_> = sent.iter().filter(|sent| sent.to == to && sent.at < now).collect();
        assert!(bytes(&came[..1]) <= SMALL && bytes(&went) <= 3 * bytes(&came[..1]), "{went:?} for {came:?}");
        mobile.pair.run_for(SECOND);
        let later = mobile.take_sent();
        let padded: Vec<_> = sent.iter().chain(&later).filter(|sent| sent.bytes.len() == 1200).collect();
        assert_eq!(padded.len(), 2, "the padded challenge and its answer");
        assert!(padded[0].is_challenge() && padded[1].is_response());
    }
}

/// `PROTO §13.2`: answers stand alone, and are as large as what they answer.
#[test]
fn a_challenge_is_answered_alone_and_to_where_it_came_from() {
    let mut mobile = Mobile::new(9);
    transfer_with_a_move(&mut mobile, Side::Left, elsewhere());
    let sent = mobile.take_sent();
    let (mut challenges, mut responses) = (vec![], vec![]);
    for sent in &sent {
        if sent.is_challenge() {
            assert!(sent.sender == 1 && !sent.has_data());
            challenges.push(sent);
        }
        if sent.is_response() {
            assert!(sent.sender == 0 && sent.to == RIGHT && !sent.has_data());
            responses.push(sent.bytes.len());
        }
    }
    let to =
        |to| challenges.iter().filter(|sent| sent.to == to).map(|sent| sent.bytes.len()).collect::<Vec<_>>();
    assert_eq!((to(elsewhere()), to(LEFT)), (vec![SMALL, 1200], vec![SMALL]));
    assert_eq!(responses, [SMALL, 1200]);
}

/// `PROTO §13.5`: what is lost is asked again.
#[test]
fn a_check_survives_the_loss_of_challenges_and_of_answers() {
    type Lost = fn(&Sent) -> bool;
    for lost in [Sent::is_challenge as Lost, Sent::is_response as Lost] {
        let mut mobile = Mobile::new(10);
        let mut left = 5;
        mobile.drop_if(move |sent| {
            let drops = left > 0 && lost(sent);
            left -= i32::from(drops);
            drops
        });
        mobile.send(Side::Left, 4 * MEGABYTE);
        mobile.run_until_received(Side::Right, MEGABYTE, 5 * SECOND);
        mobile.pair.rebind(Side::Left, next_port());
        mobile.finish(Side::Left, 1, 10 * SECOND);
        assert_eq!((mobile.remote(Side::Right), mobile.checks(Side::Right)), (next_port(), [1, 1, 0]));
    }
}

#[test]
fn transfers_survive_moves_at_thirty_percent_loss() {
    for seed in 0..8 {
        for from in [Side::Left, Side::Right] {
            let mut mobile = Mobile::with(100 + seed, line().with_loss(300_000), |config| {
                config.transport = config.transport.with_keep_alive(Some(millis(500)));
            });
            let to = if seed % 2 == 0 { next_port() } else { elsewhere() };
            let receiver = if from == Side::Left { Side::Right } else { Side::Left };
            mobile.send(from, MEGABYTE);
            mobile.run_until_received(receiver, MEGABYTE / 4, 60 * SECOND);
            mobile.pair.rebind(Side::Left, to);
            mobile.finish(from, 1, 60 * SECOND);
            assert_eq!(mobile.remote(Side::Right), to);
            let [begun, validated, given_up] = mobile.checks(Side::Right);
            assert!(validated >= 1 && begun == validated + given_up, "{begun} {validated} {given_up}");
        }
    }
}

/// Both NATs take other ports for what leaves, and still pass on what comes to the former ones.
#[test]
fn both_ends_may_move_at_once() {
    let mut mobile = Mobile::new(11);
    let right = "198.51.100.1:60006".parse().expect("an address");
    mobile.send(Side::Left, 4 * MEGABYTE);
    mobile.run_until_received(Side::Right, MEGABYTE, 5 * SECOND);
    mobile.take_sent();
    mobile.pair.rebind(Side::Left, next_port());
    mobile.pair.rebind(Side::Right, right);
    let mut late: VecDeque<Sent> = VecDeque::new();
    mobile.run_with(millis(500), |mobile, sent| {
        if [LEFT, RIGHT].contains(&sent.to) {
            late.push_back(sent.clone());
        }
        let arrived = |late: &Sent| late.at.saturating_add(ONE_WAY) <= sent.at;
        while let Some(sent) = late.pop_front_if(|late| arrived(late)) {
            let (side, from) =
                if sent.sender == 0 { (Side::Right, next_port()) } else { (Side::Left, right) };
            mobile.pair.inject(side, from, &sent.bytes);
        }
    });
    assert_eq!((mobile.remote(Side::Left), mobile.remote(Side::Right)), (right, next_port()));
    mobile.finish(Side::Left, 1, 5 * SECOND);
    assert_eq!((mobile.checks(Side::Left), mobile.checks(Side::Right)), ([1, 1, 0], [1, 1, 0]));
}

/// Exchanges of keys and moves do not get into each other's way.
#[test]
fn a_session_moves_while_fresh_keys_are_agreed_on() {
    let mut mobile = Mobile::with(12, line(), |config| {
        config.transport = config.transport.with_rekey_interval(Duration::ZERO);
    });
    mobile.send(Side::Right, 8 * MEGABYTE);
    for (number, to) in [next_port(), elsewhere(), LEFT].into_iter().enumerate() {
        mobile.run_until_received(Side::Left, (number as u64 + 1) * MEGABYTE, 5 * SECOND);
        mobile.pair.run_for(SECOND / 4);
        mobile.pair.rebind(Side::Left, to);
    }
    mobile.finish(Side::Right, 1, 10 * SECOND);
    assert_eq!(mobile.remote(Side::Right), LEFT);
    assert!(mobile.session(Side::Right).stats().epoch >= 4);
}

/// Equal inputs give equal datagrams, moves included.
#[test]
fn moves_are_deterministic() {
    let run = || {
        let mut mobile = Mobile::new(13);
        transfer_with_a_move(&mut mobile, Side::Right, elsewhere());
        let sent = mobile.sent.borrow();
        sent.iter().map(|sent| (sent.at, sent.to, sent.bytes.clone())).collect::<Vec<_>>()
    };
    assert!(run() == run());
}

/// `PROTO §4.11`, `PROTO §13.1`: the session begins where RESPONSE went, and finds out at once.
#[test]
fn an_address_that_changes_while_finish_is_lost_is_found_out() {
    for to in [next_port(), elsewhere()] {
        let mut pair =
            Pair::with_hosts(PairConfig::new(14).with_link(line()), Bulk::default(), Bulk::default());
        let mut lost = false;
        pair.intercept(move |passing| {
            let drops = !lost && HandshakeKind::of(passing.bytes) == Some(HandshakeKind::Finish);
            lost |= drops;
            if drops { Verdict::Drop } else { Verdict::Pass }
        });
        pair.dial().expect("a free session");
        pair.run_for(3 * ONE_WAY);
        pair.rebind(Side::Left, to);
        assert!(pair.run_until(|pair| pair.right.host.count(Event::PathChanged) > 0, 5 * SECOND));
        let right = pair.right.last_connected().expect("it connected");
        assert_eq!(pair.right.endpoint.session(right).expect("it is open").remote(), to);
        pair.run_for(SECOND);
        assert_eq!((pair.left.closed(), pair.right.closed()), (0, 0));
        assert_eq!(pair.left.connected(), 1);
    }
}
