//! Datagrams of no session beside sessions, on real sockets.
#![cfg(target_os = "linux")]

#[path = "../../drivers/tests/beside/app.rs"]
mod app;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant as Std};

use app::{Beside, LEN, end, meta_to, write};
use wraith_drivers::{App, Driver, Runner, Turn};
use wraith_drivers_mio::{MioDriver, Options};
use wraith_proto::{Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId, Transport, TxQueue};

fn bind(ip: IpAddr) -> MioDriver {
    MioDriver::bind(SocketAddr::new(ip, 0), &Options::default()).unwrap()
}

#[test]
fn questions_of_no_session_are_answered_beside_a_stream() {
    let (left, right) = (bind(Ipv4Addr::LOCALHOST.into()), bind(Ipv4Addr::LOCALHOST.into()));
    let mut left = end(left, 1, Some(right.local_addr()), 500, Transport::default());
    let mut right = end(right, 2, None, 1, Transport::default());
    let until = Std::now() + Duration::from_secs(20);
    while !left.is_stopped() {
        left.step().unwrap();
        right.step().unwrap();
        assert!(Std::now() < until, "{left:?} {right:?}");
    }
    assert_eq!((left.app_mut().answered, right.app_mut().received), (500, LEN));
    for end in [&mut left, &mut right] {
        assert_eq!(end.endpoint_mut().stats().dropped(), 0);
    }
}

/// Sends one datagram that is longer than a host takes, and goes on as it was.
#[derive(Debug)]
struct Shout {
    inner: Beside,
    to: Option<SocketAddr>,
}

impl Source for Shout {
    fn fill(&mut self, session: SessionHandle, stream: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        self.inner.fill(session, stream, offset, buf)
    }
}

impl App for Shout {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        self.inner.on_turn(now, endpoint)
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        self.inner.on_payload(payload);
    }

    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        self.inner.on_event(now, endpoint, session, event);
    }

    fn on_transmit(&mut self, _: Instant, queue: &mut dyn TxQueue) {
        self.to.take_if(|to| write(queue, &meta_to(*to), &vec![0x64; 65_500]));
    }
}

/// `EMSGSIZE`: the loopback device carries 65,488 bytes over IPv6.
#[test]
fn a_refused_datagram_to_where_no_session_leads_changes_no_session() {
    let ip = Ipv6Addr::LOCALHOST.into();
    let (left, right, other) = (bind(ip), bind(ip), bind(ip));
    let (driver, endpoint, inner) =
        end(left, 1, Some(right.local_addr()), 0, Transport::default()).into_parts();
    let mut left = Runner::new(driver, endpoint, Shout { inner, to: Some(other.local_addr()) });
    let mut right = end(right, 2, None, 1, Transport::default());
    let until = Std::now() + Duration::from_secs(20);
    while !left.is_stopped() {
        left.step().unwrap();
        right.step().unwrap();
        assert!(Std::now() < until, "{left:?} {right:?}");
    }
    let endpoint = left.endpoint_mut();
    assert_eq!((endpoint.stats().datagrams_refused, right.app_mut().received), (1, LEN));
}
