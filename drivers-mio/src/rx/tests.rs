use std::net::SocketAddr;

use super::*;

/// One filled slot: what stands in it, and the size of the datagrams in it.
struct Filled(Vec<u8>, usize);

fn from() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 7))
}

/// Fills slots from the front of `calls`, one element a system call; an empty list would block.
fn filler(
    mut calls: Vec<Result<Vec<Filled>, io::ErrorKind>>,
) -> impl FnMut(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize> {
    move |slots, metas| {
        if calls.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let filled = calls.remove(0)?;
        for (index, Filled(bytes, stride)) in filled.iter().enumerate() {
            let len = bytes.len().min(slots[index].len());
            slots[index][..len].copy_from_slice(&bytes[..len]);
            metas[index] = RecvMeta::default();
            metas[index].addr = SocketAddr::new(from().ip().to_canonical(), from().port());
            metas[index].len = len;
            metas[index].stride = *stride;
        }
        Ok(filled.len())
    }
}

fn recv(
    rx: &mut Rx,
    budget: usize,
    fill: impl FnMut(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
) -> (Vec<Vec<u8>>, RxReport) {
    let mut datagrams = Vec::new();
    let report = rx
        .recv(budget, fill, |meta, data| {
            assert_eq!(meta.from, from());
            datagrams.push(data.to_vec());
        })
        .unwrap();
    (datagrams, report)
}

fn never(_: &mut [IoSliceMut<'_>], _: &mut [RecvMeta]) -> io::Result<usize> {
    panic!("the kept datagrams come first");
}

/// `DRV §2.2`
#[test]
fn a_joined_buffer_is_lent_datagram_by_datagram_and_the_last_may_be_shorter() {
    let mut rx = Rx::new(1000);
    let slots = vec![Filled(vec![1; 25], 10), Filled(vec![2; 20], 10), Filled(vec![3; 5], 5)];
    let (datagrams, report) = recv(&mut rx, 99, filler(vec![Ok(slots)]));
    let lens: Vec<_> = datagrams.iter().map(Vec::len).collect();
    assert_eq!(lens, [10, 10, 5, 10, 10, 5]);
    assert_eq!(report, RxReport { datagrams: 6, truncated: 0, budget_hit: false });
}

/// `DRV §2.2, §2.5`
#[test]
fn a_budget_of_one_takes_a_joined_buffer_apart_over_several_calls() {
    let mut rx = Rx::new(1000);
    let bytes: Vec<u8> = (0..25).collect();
    let (first, report) = recv(&mut rx, 1, filler(vec![Ok(vec![Filled(bytes, 10)])]));
    assert_eq!(first, [(0..10).collect::<Vec<u8>>()]);
    assert!(report.budget_hit && rx.has_kept());
    let (second, report) = recv(&mut rx, 1, never);
    assert_eq!(second, [(10..20).collect::<Vec<u8>>()]);
    assert!(report.budget_hit);
    let (third, report) = recv(&mut rx, 1, filler(vec![]));
    assert_eq!(third, [(20..25).collect::<Vec<u8>>()]);
    assert!(report.budget_hit, "the socket was not asked again");
    let (rest, report) = recv(&mut rx, 1, filler(vec![]));
    assert!(rest.is_empty());
    assert_eq!(report, RxReport::default());
}

#[test]
fn a_budget_of_nothing_lends_nothing_and_says_so() {
    let mut rx = Rx::new(1000);
    let (datagrams, report) = recv(&mut rx, 0, never);
    assert!(datagrams.is_empty());
    assert_eq!(report, RxReport { budget_hit: true, ..RxReport::default() });
}

/// `DRV §2.7`
#[test]
fn a_datagram_longer_than_a_slot_is_counted_and_not_lent() {
    let mut rx = Rx::new(100);
    let slots = vec![Filled(vec![1; 100], 100), Filled(vec![2; 101], 101), Filled(vec![3; 100], 100)];
    let (datagrams, report) = recv(&mut rx, 99, filler(vec![Ok(slots)]));
    assert_eq!(datagrams, [vec![1; 100], vec![3; 100]]);
    assert_eq!(report, RxReport { datagrams: 2, truncated: 1, budget_hit: false });
}

#[test]
fn an_empty_datagram_is_lent() {
    let mut rx = Rx::new(100);
    let (datagrams, report) = recv(&mut rx, 99, filler(vec![Ok(vec![Filled(vec![], 0)])]));
    assert_eq!(datagrams, [Vec::<u8>::new()]);
    assert_eq!(report.datagrams, 1);
}

/// `DRV §2.11`
#[test]
fn errors_that_other_hosts_cause_are_passed_over() {
    let mut rx = Rx::new(100);
    let refused = || Err(io::ErrorKind::ConnectionRefused);
    let calls = vec![refused(), refused(), Ok(vec![Filled(vec![1], 1)])];
    let (datagrams, report) = recv(&mut rx, 99, filler(calls));
    assert_eq!(datagrams, [[1]]);
    assert_eq!(report, RxReport { datagrams: 1, truncated: 0, budget_hit: false });

    let (_, report) = recv(&mut rx, 99, |_, _| Err(io::ErrorKind::ConnectionReset.into()));
    assert_eq!(report, RxReport { budget_hit: true, ..RxReport::default() });
}

#[test]
fn an_error_of_the_socket_itself_is_reported() {
    let mut rx = Rx::new(100);
    let error = rx.recv(9, |_, _| Err(io::ErrorKind::InvalidInput.into()), |_, _| {}).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
