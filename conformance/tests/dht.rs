//! The DHT's node in memory keeps to its clauses, one at a UDP address does, and every wrong one is rejected.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wraith_conformance::dht::{Case, Core, Live, cases, run_case, specimens};
use wraith_conformance::{Options, Verdict};
use wraith_dht_proto::{Limits, MAX_DATAGRAM, SealedDht};
use wraith_proto::crypto::RustCrypto;
use wraith_proto::{Identity, Instant};

wraith_conformance::dht_suite!(Core);

fn case(id: &str) -> &'static Case {
    cases().iter().find(|case| case.id == id).unwrap()
}

#[test]
fn the_core_passes_every_case_and_each_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = cases().iter().map(|case| case.id).collect();
    assert_eq!(names.len(), cases().len(), "two cases of one name");
    for seed in 1..4 {
        let mut options = Options::default();
        options.seed = seed;
        for case in cases() {
            assert_eq!(run_case(&Core, case, &options), Verdict::Pass, "{}, seed {seed}", case.id);
        }
    }
}

#[test]
fn every_wrong_node_is_rejected_and_the_one_without_a_fault_is_not() {
    let specimens = specimens();
    let (sound, wrong) = specimens.split_first().unwrap();
    for case in cases() {
        assert_eq!(run_case(sound, case, &Options::default()), Verdict::Pass, "{}", case.id);
    }
    assert!(wrong.len() >= 6);
    for specimen in wrong {
        let verdict = run_case(specimen, case(specimen.rejected_by), &Options::default());
        let reason = match verdict {
            Verdict::Fail(reason) => reason,
            other => panic!("{}: {other:?}", specimen.name),
        };
        // For its fault, and not because nothing came.
        assert!(!reason.contains("not answered") || specimen.name.contains("transaction"), "{reason}");
    }
}

/// A node on loopback, in the plainest loop that there is.
struct Node {
    live: Live,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    fn start() -> Self {
        let me = Identity::from_seed([41; 32]);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let live = Live { peer: *me.peer_id().as_bytes(), addr: socket.local_addr().unwrap() };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || run(&socket, me, &stopped));
        Self { live, stop, thread: Some(thread) }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || thread::panicking(), "the node's thread panicked");
    }
}

fn run(socket: &UdpSocket, me: Identity, stop: &AtomicBool) {
    let clock = std::time::Instant::now();
    let now = || Instant::from_nanos(1_000_000_000 + clock.elapsed().as_nanos() as u64);
    let mut node = SealedDht::new(&Limits::default(), me, &RustCrypto, 64, &[42; 32], now());
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut buffer = [0; 2_048];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            // What is dropped is dropped.
            let _ = node.handle(now(), from, &mut buffer[..len]);
        }
        if node.dht().poll_timeout() <= now() {
            node.dht_mut().handle_timeout(now());
        }
        while let Some((to, len)) = node.poll_transmit(now(), &mut buffer[..MAX_DATAGRAM]) {
            socket.send_to(&buffer[..len], to).unwrap();
        }
    }
}

/// The same node sees all the cases, one after the other.
#[test]
fn a_node_at_an_address_conforms() {
    let node = Node::start();
    let mut not_claimed = Vec::new();
    for case in cases() {
        match run_case(&node.live, case, &Options::default()) {
            Verdict::Pass => {}
            Verdict::NotClaimed(_) => not_claimed.push(case.id),
            other => panic!("{}: {other:?}", case.id),
        }
    }
    // Two of them want a search of the node, which joins nobody.
    let needs_more = [
        "contacts/who_answers_a_request_without_a_token_is_pinged_with_its_own",
        "contacts/a_private_address_is_not_named_to_a_public_one",
        "contacts/a_list_of_21_nodes_is_dropped",
    ];
    assert_eq!(not_claimed, needs_more);
}
