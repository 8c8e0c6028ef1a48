//! Sealed messages by the public interface: what they allocate, and what an endpoint makes of them.

use std::time::Duration;

use wraith_proto::crypto::RustCrypto;
use wraith_proto::sealed::{Letter, Mailbox, MessageId, is_datagram};
use wraith_proto::{DropReason, Identity, Outcome};
use wraith_sim::alloc::{Counting, measure};
use wraith_sim::{LEFT, Pair, PairConfig, Side};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn mailbox(seed: u8, peers: u32) -> Mailbox {
    Mailbox::new(Identity::from_seed([seed; 32]), &RustCrypto, peers)
}

fn letter(to: &Mailbox) -> Letter {
    Letter { to: to.peer_id(), id: MessageId([7; 16]), time: 0, sign: false }
}

/// Keys alone, and the same number whether peers are new, remembered or forgotten again.
#[test]
fn a_message_allocates_its_keys_and_nothing_for_the_memory_of_peers() {
    let mut one = mailbox(0, 10);
    let mut others: Vec<Mailbox> = (1..=30).map(|seed| mailbox(seed, 10)).collect();
    let mut datagram = [0; 200];
    for round in 0..3_u8 {
        for other in &mut others {
            let letter = letter(other);
            let (sealed, counts) =
                measure(|| one.seal_datagram(&letter, &[round; 32], b"hello", &mut datagram));
            assert_eq!((counts.allocations, counts.deallocations), (3, 3));
            let len = sealed.unwrap();
            let (opened, counts) =
                measure(|| other.open_datagram(&mut datagram[..len]).map(|(opened, _)| opened.from));
            assert_eq!((counts.allocations, counts.deallocations), (2, 2));
            assert_eq!(opened, Ok(one.peer_id()));
        }
    }
    assert_eq!(one.known_peers(), 10);
}

/// `PROTO §2.2`: before and in a session, and without reading more than the first byte.
#[test]
fn an_endpoint_drops_and_counts_sealed_datagrams() {
    let mut pair = Pair::new(PairConfig::new(1));
    let identity = pair.right.endpoint.config().identity.clone();
    let mut to = Mailbox::new(identity, &RustCrypto, 0);
    let mut datagram = vec![0; 1200];
    mailbox(9, 0).seal_datagram(&letter(&to), &[1; 32], &[0; 1046], &mut datagram).unwrap();
    assert!(is_datagram(&datagram));
    for run in [Duration::ZERO, Duration::from_secs(1)] {
        pair.run_for(run);
        for datagram in [&datagram[..], &datagram[..1]] {
            let outcome = pair.inject(Side::Right, LEFT, datagram);
            assert_eq!(outcome, Outcome::Dropped(DropReason::Sealed));
        }
        pair.dial().unwrap();
    }
    let stats = pair.right.endpoint.stats();
    assert_eq!((stats.drops(DropReason::Sealed), stats.dropped()), (4, 4));
    // It was for a mailbox.
    assert!(to.open_datagram(&mut datagram).is_ok());
    for first in 0..=255_u8 {
        assert_eq!(is_datagram(&[first]), first == 0x61);
    }
    assert!(!is_datagram(&[]));
}
