//! Sessions over the device, and what lives beside them or happens to it.

use std::time::Instant as Std;

use wraith_drivers::{Driver, Runner};
use wraith_drivers_xdp::XdpDriver;
use wraith_drivers_xdp::veth::Veth;
use wraith_proto::Transport;

use crate::app::{Beside, LEN, end};
use crate::common::{PATIENCE, bind, command, hosts};

/// Bytes of a stream that takes longer than the search for the largest datagram.
const LONG: u64 = 50_000_000;

type End = Runner<XdpDriver, Beside>;

/// Two ends; the left one sends its stream and asks `questions` times.
fn ends(veth: &Veth, questions: u32, transport: Transport) -> (End, End) {
    let (left, right) = (bind(veth.left(), veth.left().ipv4()), bind(veth.right(), veth.right().ipv4()));
    let peer = right.local_addr();
    (end(left, 1, Some(peer), questions, transport), end(right, 2, None, 1, transport))
}

/// Steps both until `done`.
fn run((left, right): &mut (End, End), mut done: impl FnMut(&mut End, &mut End) -> bool) {
    let until = Std::now() + PATIENCE;
    while !done(left, right) {
        left.step().unwrap();
        right.step().unwrap();
        assert!(Std::now() < until, "{left:?} {right:?}");
    }
}

/// The first ones leave through the kernel, which does not know the neighbour yet.
#[test]
fn questions_of_no_session_are_answered_beside_a_stream() {
    let Some(veth) = hosts(|options| options.neighbours = false) else { return };
    let mut ends = ends(&veth, 500, Transport::default());
    run(&mut ends, |left, _| left.is_stopped());
    let (left, right) = &mut ends;
    assert_eq!((left.app_mut().answered, right.app_mut().received), (500, LEN));
    for end in [left, right] {
        assert_eq!(end.endpoint_mut().stats().dropped(), 0);
    }
}

/// The driver goes on with the longest packet that the device had when it was bound: what the line no longer carries is
/// lost without a word, which sessions have to notice by themselves (`PROTO §8.15`).
#[test]
fn a_session_goes_on_when_the_devices_come_to_carry_less() {
    let Some(veth) = hosts(|_| {}) else { return };
    let transport = Transport::default().with_max_datagram(1_472).with_mtu_search(true);
    let mut ends = ends(&veth, 0, transport);
    ends.0.app_mut().len = LONG;
    let size = |left: &mut End| {
        let session = left.app_mut().session;
        let session = session.and_then(|session| left.endpoint_mut().session(session));
        session.map_or(0, |session| session.stats().datagram_size)
    };
    run(&mut ends, |left, _| size(left) == 1_472);
    assert!(ends.1.app_mut().received < LONG / 2);
    for side in [veth.left(), veth.right()] {
        command(side, "ip link set wraith0 mtu 1280");
    }
    run(&mut ends, |left, _| left.is_stopped());
    let (left, right) = &mut ends;
    assert_eq!(right.app_mut().received, LONG);
    assert!((1_200..=1_252).contains(&size(left)), "{}", size(left));
}
