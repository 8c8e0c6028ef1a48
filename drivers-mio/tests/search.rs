//! The search for the largest datagram on real sockets.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant as Std};

use wraith_drivers::{App, Driver, Runner, Turn};
use wraith_drivers_mio::{MioDriver, Options};
use wraith_proto::{
    Config, Endpoint, Event, Identity, Instant, Payload, Peer, SessionHandle, Source, StreamId, Transport,
    Via,
};

/// Opens a session and says nothing.
#[derive(Default)]
struct Quiet {
    session: Option<SessionHandle>,
}

impl Source for Quiet {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl App for Quiet {
    fn on_turn(&mut self, _: Instant, _: &mut Endpoint) -> Turn {
        Turn::Continue
    }

    fn on_payload(&mut self, _: Payload<'_>) {}

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        if event == Event::Connected {
            self.session = Some(session);
        }
    }
}

fn end(ip: IpAddr, number: u8) -> Runner<MioDriver, Quiet> {
    let driver = MioDriver::bind(SocketAddr::new(ip, 0), &Options::default()).unwrap();
    assert!(driver.caps().dont_fragment && driver.caps().max_datagram >= 65_507);
    let mut config = Config::new(Identity::from_seed([number; 32]), b"search");
    config.transport = Transport::default().with_max_datagram(65_507).with_mtu_search(true);
    let endpoint = Endpoint::new(config, [number; 32], driver.now()).unwrap();
    Runner::new(driver, endpoint, Quiet::default())
}

/// The datagram size and the largest unreliable datagram of one end's session.
fn sizes(end: &mut Runner<MioDriver, Quiet>) -> (usize, usize) {
    let Some(session) = end.app_mut().session else { return (0, 0) };
    let session = end.endpoint_mut().session(session).unwrap();
    (session.stats().datagram_size.into(), session.max_datagram())
}

/// `PROTO §8.11`, `PROTO §8.16`: over IPv4 the most that UDP carries. Over IPv6 the most that the loopback device carries,
/// 65,488 bytes, to a sixty-fourth: the system refuses what is longer, which the search is told.
#[test]
fn the_search_finds_what_loopback_carries() {
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    for (ip, found, refuses) in [(v4, 65_507..=65_507, false), (v6, 64_464..=65_488, true)] {
        let (mut left, mut right) = (end(ip, 1), end(ip, 2));
        let peer =
            Peer { addr: right.driver().local_addr(), id: Some(Identity::from_seed([2; 32]).peer_id()) };
        let now = left.driver().now();
        left.endpoint_mut().connect(now, peer, Via(0)).unwrap();
        let until = Std::now() + Duration::from_secs(20);
        while !(found.contains(&sizes(&mut left).0) && found.contains(&sizes(&mut right).0)) {
            left.step().unwrap();
            right.step().unwrap();
            assert!(Std::now() < until, "{ip}: {:?} {:?}", sizes(&mut left), sizes(&mut right));
        }
        for end in [&mut left, &mut right] {
            let (size, payload) = sizes(end);
            assert_eq!(payload, size - 34);
            assert_eq!(end.endpoint_mut().stats().datagrams_refused > 0, refuses);
        }
    }
}
