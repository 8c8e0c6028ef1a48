//! All that a third party writes: a driver, here over `std::net::UdpSocket`, a harness that pairs two, and a run.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

use wraith_conformance::{Harness, Link, Options, Pair, Setup};
use wraith_drivers::{Caps, Clock, Driver, Mode, RxReport, TxReport};
use wraith_proto::{Ecn, Instant, RxMeta, TxMeta, TxQueue, Via};

struct Udp(UdpSocket, Queue, Vec<u8>, Clock);
/// Memory, then where its first ones go and how long they are, then what is reserved.
struct Queue(Vec<Vec<u8>>, Vec<(SocketAddr, usize)>, Option<(SocketAddr, usize)>);
impl TxQueue for Queue {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        self.2 = None;
        let room = self.0.get_mut(self.1.len())?.get_mut(..len)?;
        self.2 = Some((meta.to, len));
        Some(room)
    }
    fn commit(&mut self, len: usize) {
        self.1.extend(self.2.take().map(|(to, reserved)| (to, len.min(reserved))));
    }
}
impl Driver for Udp {
    type Tx = Queue;
    fn caps(&self) -> Caps {
        Caps::new(Mode::Syscall, self.2.len() - 1, self.1.0.len())
    }
    fn local_addr(&self) -> SocketAddr {
        self.0.local_addr().expect("it is bound")
    }
    fn now(&self) -> Instant {
        self.3.now()
    }
    fn recv(&mut self, budget: usize, mut f: impl FnMut(&RxMeta, &mut [u8])) -> io::Result<RxReport> {
        let mut report = RxReport::default();
        while report.datagrams < budget {
            match self.0.recv_from(&mut self.2) {
                Ok((len, _)) if len == self.2.len() => report.truncated += 1,
                Ok((len, from)) => {
                    f(&RxMeta { from, to: None, via: Via(0), ecn: Ecn::NotEct }, &mut self.2[..len]);
                    report.datagrams += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(report),
                Err(_) => {} // another host's doing
            }
        }
        Ok(RxReport { budget_hit: true, ..report })
    }
    fn tx(&mut self) -> &mut Queue {
        &mut self.1
    }
    fn flush(&mut self) -> io::Result<TxReport> {
        let Queue(memory, committed, reserved) = &mut self.1;
        (*reserved, self.3) = (None, self.3);
        let mut report = TxReport { syscalls: committed.len(), ..TxReport::default() };
        for ((to, len), data) in committed.iter().zip(memory.iter()) {
            match self.0.send_to(&data[..*len], to) {
                Ok(_) => report.sent += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => report.dropped += 1,
            }
        }
        let gone = report.sent + report.dropped;
        memory[..committed.len()].rotate_left(gone);
        committed.drain(..gone);
        Ok(TxReport { in_flight: committed.len(), ..report })
    }
}
struct Mine;
impl Harness for Mine {
    type Driver = Udp;
    const NAME: &'static str = "my driver";
    fn pair(link: &Link) -> Result<Pair<Udp>, Setup> {
        let bind = |bytes: usize| {
            let socket = UdpSocket::bind(if link.ipv6 { "[::1]:0" } else { "127.0.0.1:0" })?;
            socket.set_nonblocking(true)?;
            let queue = Queue(vec![vec![0; bytes]; link.tx_slots], Vec::with_capacity(link.tx_slots), None);
            io::Result::Ok(Udp(socket, queue, vec![0; bytes + 1], Clock::new()))
        };
        let mtu = usize::from(link.mtu);
        Ok(Pair::new(bind(mtu)?, bind(link.right_slot.unwrap_or(mtu))?))
    }
}

wraith_conformance::counting_allocator!();
fn main() {
    let report = wraith_conformance::run::<Mine>(&Options::default());
    println!("{}", report.to_json());
    assert!(report.conforms(), "{:?}", report.failures().collect::<Vec<_>>());
}
