//! The counting allocator counts, and a link that has warmed up allocates nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_proto::{Ecn, Instant, RxMeta, Via};
use wraith_sim::alloc::{Counting, Counts, c_heap_bytes, counts, global_counts, live_bytes, measure};
use wraith_sim::{Link, LinkConfig};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const META: RxMeta = RxMeta {
    from: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9),
    to: None,
    via: Via(0),
    ecn: Ecn::Ect0,
};

#[test]
fn allocations_reallocations_and_deallocations_are_counted() {
    let ((), none) = measure(|| ());
    assert_eq!(none, Counts::default());

    let (block, made) = measure(|| Vec::<u8>::with_capacity(100));
    assert_eq!(made, Counts { allocations: 1, deallocations: 0, bytes: 100 });

    let (block, grown) = measure(move || {
        let mut block = block;
        block.reserve_exact(200);
        block
    });
    assert_eq!(grown, Counts { allocations: 1, deallocations: 1, bytes: 200 });

    let ((), freed) = measure(move || drop(block));
    assert_eq!(freed, Counts { allocations: 0, deallocations: 1, bytes: 0 });
}

/// Other tests of this program allocate meanwhile, but not megabytes.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn the_c_heap_has_the_blocks_of_the_system_allocator() {
    let before = c_heap_bytes().unwrap();
    let block = Vec::<u8>::with_capacity(64 << 20);
    let held = c_heap_bytes().unwrap();
    assert!(held - before >= 64 << 20, "{before} and {held} bytes");
    drop(block);
    assert!(held - c_heap_bytes().unwrap() >= 48 << 20);
}

#[test]
fn live_bytes_are_those_that_were_not_given_back() {
    let before = live_bytes();
    let mut block = Vec::<u8>::with_capacity(100);
    assert_eq!(live_bytes() - before, 100);
    block.reserve_exact(200);
    assert_eq!(live_bytes() - before, 200);
    drop(block);
    assert_eq!(live_bytes(), before);
}

#[test]
fn another_threads_allocations_count_only_globally() {
    let (local, global) = (counts(), global_counts());
    let handle = std::thread::spawn(|| measure(|| vec![0_u8; 4096]).1);
    let spawning = counts().since(local);
    let there = handle.join().unwrap();
    assert_eq!(there.bytes, 4096);
    assert!(global_counts().since(global).bytes >= 4096 + spawning.bytes);
    assert!(counts().since(local).bytes < 4096);
}

#[test]
fn a_warm_link_allocates_nothing() {
    let config = LinkConfig::perfect()
        .with_latency(Duration::from_millis(5))
        .with_jitter(Duration::from_millis(1))
        .with_loss(10_000)
        .with_duplicate(10_000)
        .with_reorder(50_000, Duration::from_millis(2))
        .with_rate(Some(100_000_000))
        .with_slots(512);
    let mut link = Link::new(config, 11);
    let mut now = Instant::from_nanos(1);
    let datagram = [7_u8; 1200];
    let (delivered, counts) = measure(|| {
        let mut delivered = 0_u64;
        for _ in 0..20_000 {
            now = now.saturating_add(Duration::from_micros(100));
            link.push(now, &META, &datagram);
            while let Some((_, bytes)) = link.pop(now) {
                delivered += bytes.len() as u64;
            }
        }
        delivered
    });
    assert!(delivered > 19_000 * 1200);
    assert_eq!(counts, Counts::default());
}
