//! All that a third party writes: a driver, here over `std::net::UdpSocket`, a harness that pairs two, and a run.
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

use wraith_conformance::{Harness, Link, Options, Pair, Setup};
use wraith_drivers::{Caps, Clock, Driver, Mode, RxReport, Slots, TxReport};
use wraith_proto::{Ecn, Instant, RxMeta, Via};

struct StdUdp {
    socket: UdpSocket,
    tx: Slots,
    buffer: Vec<u8>, // a byte longer than any datagram, to notice longer ones
    clock: Clock,
}
impl Driver for StdUdp {
    type Tx = Slots;
    fn caps(&self) -> Caps {
        Caps::new(Mode::Syscall, self.buffer.len() - 1, self.tx.capacity())
    }
    fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr().expect("it is bound")
    }
    fn now(&self) -> Instant {
        self.clock.now()
    }
    fn recv(&mut self, budget: usize, mut lend: impl FnMut(&RxMeta, &mut [u8])) -> io::Result<RxReport> {
        let mut report = RxReport::default();
        while report.datagrams < budget {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((len, _)) if len == self.buffer.len() => report.truncated += 1,
                Ok((len, from)) => {
                    lend(&RxMeta { from, to: None, via: Via(0), ecn: Ecn::NotEct }, &mut self.buffer[..len]);
                    report.datagrams += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(report),
                Err(_) => {} // another host's doing
            }
        }
        Ok(RxReport { budget_hit: true, ..report })
    }
    fn tx(&mut self) -> &mut Slots {
        &mut self.tx
    }
    fn flush(&mut self) -> io::Result<TxReport> {
        let mut report = TxReport::default();
        for (meta, datagram) in self.tx.committed() {
            report.syscalls += 1;
            match self.socket.send_to(datagram, meta.to) {
                Ok(_) => report.sent += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => report.dropped += 1,
            }
        }
        self.tx.retire(report.sent + report.dropped);
        Ok(TxReport { in_flight: self.tx.committed().len(), ..report })
    }
}

struct Mine;
impl Harness for Mine {
    type Driver = StdUdp;
    const NAME: &'static str = "std-udp";
    fn pair(link: &Link) -> Result<Pair<StdUdp>, Setup> {
        let bind = |bytes: usize| {
            let socket = UdpSocket::bind(if link.ipv6 { "[::1]:0" } else { "127.0.0.1:0" })?;
            socket.set_nonblocking(true)?;
            let (tx, buffer) = (Slots::new(link.tx_slots, bytes), vec![0; bytes + 1]);
            io::Result::Ok(StdUdp { socket, tx, buffer, clock: Clock::new() })
        };
        let mtu = usize::from(link.mtu);
        Ok(Pair::new(bind(mtu)?, bind(link.right_slot.unwrap_or(mtu))?))
    }
}

fn main() {
    let report = wraith_conformance::run::<Mine>(&Options::default());
    assert!(report.conforms(), "{report}");
    println!("{report}");
}
