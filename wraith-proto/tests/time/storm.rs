//! Outages, sleeps, restarts and dials in any order: nothing panics, and nothing is left over.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::wire::is_handshake;
use wraith_proto::{Config, Endpoint, Event, SessionHandle};
use wraith_sim::{LEFT, Node, Pair, PairConfig, Recorder, Rng, Side, Verdict};

use crate::common::{SECOND, events, full, millis, small};

/// Sessions that were closed while the other end slept may linger for long: its answers say that the path is slow.
const HOUR: Duration = Duration::from_hours(1);

/// What gets lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    Nothing,
    Everything,
    Of(u32),
    Handshakes,
    Packets,
    /// Every third datagram.
    Some,
}

fn config(seed: u64) -> PairConfig {
    small(seed).with_both(|config| {
        config.limits.sessions = 16;
        config.transport = config.transport.with_redial(true).with_keep_alive(Some(8 * SECOND));
    })
}

/// The sessions of an end of which it has not heard the end.
fn living(node: &mut Node<Recorder>) -> Vec<SessionHandle> {
    let mut all: Vec<_> = node.host.events.iter().map(|(session, _)| *session).collect();
    all.sort();
    all.dedup();
    all.retain(|session| !events(node, *session).iter().any(|event| matches!(event, Event::Closed(_))));
    all
}

fn say(node: &mut Node<Recorder>) {
    for session in living(node) {
        // Closed, full, or not admitted yet.
        let _ = node.endpoint.session(session).expect("it lives").send_datagram(Bytes::from_static(b"hello"));
    }
}

fn restart(pair: &mut Pair, side: Side, config: Config, seed: u8) {
    let fresh = Endpoint::new(config, [seed; 32], pair.now()).expect("it fits");
    let node = if side == Side::Left { &mut pair.left } else { &mut pair.right };
    node.endpoint = fresh;
    node.host.events.clear();
}

fn lose(pair: &mut Pair, loss: &Rc<Cell<Loss>>) {
    let (loss, count) = (Rc::clone(loss), Cell::new(0_u32));
    pair.intercept(move |passing| {
        count.set(count.get() + 1);
        let lost = match loss.get() {
            Loss::Nothing => false,
            Loss::Everything => true,
            Loss::Of(sender) => passing.sender == sender,
            Loss::Handshakes => is_handshake(passing.bytes),
            Loss::Packets => !is_handshake(passing.bytes),
            Loss::Some => count.get() % 3 == 0,
        };
        if lost { Verdict::Drop } else { Verdict::Pass }
    });
}

/// One thing that happens.
fn happen(pair: &mut Pair, rng: &mut Rng, loss: &Rc<Cell<Loss>>, seed: u64, asleep: &mut [bool; 2]) {
    let side = if rng.below(2) == 0 { Side::Left } else { Side::Right };
    match rng.below(16) {
        0..=4 => {
            let all =
                [Loss::Everything, Loss::Of(0), Loss::Of(1), Loss::Handshakes, Loss::Packets, Loss::Some];
            loss.set(all[rng.below(all.len() as u64) as usize]);
        }
        5..=7 => loss.set(Loss::Nothing),
        8 if !asleep[side as usize] => {
            asleep[side as usize] = true;
            pair.suspend(side);
        }
        8 | 9 if asleep[side as usize] => {
            asleep[side as usize] = false;
            pair.wake(side);
        }
        10 if !asleep[side as usize] => {
            let config = config(seed);
            let config = if side == Side::Left { config.left } else { config.right };
            restart(pair, side, config, rng.next_u64() as u8);
        }
        11 => {
            // There may be no room.
            let _ = pair.dial();
        }
        12 => {
            let peer = wraith_proto::Peer { addr: LEFT, id: Some(pair.left.peer_id()) };
            let _ = pair.right.endpoint.connect(pair.now(), peer, wraith_proto::Via::default());
        }
        13 => {
            let now = pair.now();
            let node = if side == Side::Left { &mut pair.left } else { &mut pair.right };
            if let Some(&session) = living(node).first() {
                node.endpoint.session(session).expect("it lives").close(now, 1);
            }
        }
        _ => {
            say(&mut pair.left);
            say(&mut pair.right);
        }
    }
}

/// `PROTO §9.22`: 60 seeds, or 3,000 on a full budget.
#[test]
fn whatever_happens_the_ends_find_each_other_again_and_nothing_is_left() {
    let (seeds, mut dials) = (if full() { 3_000 } else { 60 }, 0);
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let mut pair = Pair::new(config(seed));
        pair.connect();
        let (loss, mut asleep) = (Rc::new(Cell::new(Loss::Nothing)), [false; 2]);
        lose(&mut pair, &loss);
        for _ in 0..60 {
            happen(&mut pair, &mut rng, &loss, seed, &mut asleep);
            pair.run_for(millis(rng.below(6_000)));
        }
        loss.set(Loss::Nothing);
        for side in [Side::Left, Side::Right] {
            pair.wake(side);
        }
        say(&mut pair.left);
        say(&mut pair.right);
        pair.run_for(3 * Duration::from_mins(1));
        // What lives at one end lives at the other, and what was closed is forgotten in the end.
        let (left, right) = (living(&mut pair.left), living(&mut pair.right));
        assert_eq!(
            left.len(),
            right.len(),
            "seed {seed}: {:?} {:?}",
            pair.left.host.events,
            pair.right.host.events
        );
        let both = [left.len(), right.len()];
        let forgotten = |pair: &Pair| [pair.left.endpoint.sessions(), pair.right.endpoint.sessions()] == both;
        assert!(pair.run_until(forgotten, HOUR), "seed {seed}: a session that nobody knows of");
        for session in left {
            let now = pair.now();
            pair.left.endpoint.session(session).expect("it lives").close(now, 0);
        }
        let none = |pair: &Pair| pair.left.endpoint.sessions() + pair.right.endpoint.sessions() == 0;
        assert!(pair.run_until(none, HOUR), "seed {seed}");
        let (left, _) = pair.connect();
        assert!(pair.left.host.saw(left, Event::Connected));
        dials += pair.left.endpoint.stats().redials + pair.right.endpoint.stats().redials;
    }
    assert!(dials > seeds, "{dials} dials of silent peers");
}
