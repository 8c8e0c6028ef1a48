//! The segmentation rule at its edges.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wraith_drivers::Segments;
use wraith_proto::{Ecn, TxMeta, Via};

fn to(port: u16) -> TxMeta {
    let to = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct }
}

/// Pushes every length to port 1 and returns all batches as (bytes, segment).
fn batches(segments: &mut Segments, lens: &[usize]) -> Vec<(usize, usize)> {
    for &len in lens {
        assert!(segments.push(&to(1), len));
    }
    assert_eq!(segments.datagrams(), lens.len());
    let mut taken = Vec::new();
    while let Some((meta, bytes, segment)) = segments.take() {
        assert_eq!(meta, to(1));
        taken.push((bytes, segment));
    }
    assert!(segments.is_empty());
    assert_eq!(segments.datagrams(), 0);
    taken
}

/// `DRV §3.9`
#[test]
fn equal_datagrams_form_one_batch_and_a_shorter_one_ends_it() {
    let mut segments = Segments::new(64, 65_507);
    assert_eq!(batches(&mut segments, &[1200, 1200, 700, 1200]), [(3100, 1200), (1200, 1200)]);
    assert_eq!(batches(&mut segments, &[700, 700, 699, 699]), [(2099, 700), (699, 699)]);
}

/// `DRV §3.9`
#[test]
fn a_longer_datagram_starts_a_batch() {
    let mut segments = Segments::new(64, 65_507);
    assert_eq!(batches(&mut segments, &[1200, 1201, 1201]), [(1200, 1200), (2402, 1201)]);
}

#[test]
fn an_empty_datagram_travels_alone() {
    let mut segments = Segments::new(64, 65_507);
    assert_eq!(batches(&mut segments, &[5, 0, 0, 5]), [(5, 5), (0, 0), (0, 0), (5, 5)]);
}

/// `DRV §3.10`
#[test]
fn a_batch_holds_at_most_the_given_number_of_segments() {
    let mut segments = Segments::new(3, 65_507);
    assert_eq!(batches(&mut segments, &[10; 7]), [(30, 10), (30, 10), (10, 10)]);
    let mut single = Segments::new(0, 65_507);
    assert_eq!(batches(&mut single, &[10, 10]), [(10, 10), (10, 10)]);
}

/// `DRV §3.10`
#[test]
fn a_batch_holds_at_most_the_given_number_of_bytes() {
    let mut segments = Segments::new(64, 65_507);
    assert_eq!(batches(&mut segments, &[32_753, 32_753, 1]), [(65_507, 32_753)]);
    assert_eq!(batches(&mut segments, &[32_754, 32_753, 1]), [(65_507, 32_754), (1, 1)]);
    assert_eq!(batches(&mut segments, &[32_754, 32_754]), [(32_754, 32_754), (32_754, 32_754)]);
    assert_eq!(batches(&mut segments, &[65_527, 1]), [(65_527, 65_527), (1, 1)]);
}

/// `DRV §3.9`
#[test]
fn datagrams_with_different_meta_never_share_a_batch() {
    let mut segments = Segments::new(64, 65_507);
    let marked = TxMeta { ecn: Ecn::Ect0, ..to(1) };
    let via = TxMeta { via: Via(1), ..to(1) };
    let sourced = TxMeta { from: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), ..to(1) };
    let metas = [to(1), to(2), to(1), marked, via, sourced];
    for meta in &metas {
        assert!(segments.push(meta, 100));
    }
    for meta in metas {
        assert_eq!(segments.take(), Some((meta, 100, 100)));
    }
    assert_eq!(segments.take(), None);
}

#[test]
fn a_full_queue_refuses_what_needs_another_batch_and_takes_what_joins() {
    let mut segments = Segments::with_capacity(4, 65_507, 2);
    assert!(segments.push(&to(1), 100));
    assert!(segments.has_room(&to(2), 100));
    assert!(segments.push(&to(2), 100));
    assert!(!segments.has_room(&to(1), 100));
    assert!(!segments.push(&to(1), 100));
    assert!(!segments.has_room(&to(2), 101));
    assert!(segments.has_room(&to(2), 100));
    assert!(segments.push(&to(2), 60), "a shorter commit joins as well");
    assert!(!segments.has_room(&to(2), 60), "the batch ended with a shorter datagram");
    assert_eq!(segments.datagrams(), 3);
    assert_eq!(segments.take(), Some((to(1), 100, 100)));
    assert!(segments.has_room(&to(1), 100));
    assert_eq!(segments.take(), Some((to(2), 160, 100)));
}

#[test]
fn the_segment_limit_can_fall_while_batches_stand() {
    let mut segments = Segments::new(64, 65_507);
    assert!(segments.push(&to(1), 100));
    assert!(segments.push(&to(1), 100));
    segments.set_max_segments(1);
    assert!(segments.push(&to(1), 100));
    assert_eq!(segments.take(), Some((to(1), 200, 100)));
    assert_eq!(segments.take(), Some((to(1), 100, 100)));
}
