//! A capture of everything that a driver carries.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header, UdpHeader};
use wraith_proto::{Ecn, Instant, RxMeta, TxMeta};

use super::pass_on;
use crate::{Caps, Driver, Park, RxReport, Slots, TxReport, Wake};
#[cfg(unix)]
use crate::{Interest, Pollable};

/// Writes the datagrams of a driver to `sink` as a capture file, which tcpdump and Wireshark read.
///
/// The capture has IP and UDP headers made from the metadata: addresses, ports, ECN marks and checksums, and of the rest
/// what is usual. It has what is handed to the driver inside, whether that can send it or not, and what it lends.
/// Sending costs a copy. An error of the sink ends the capture and not the driver: see [`Pcap::error`].
#[derive(Debug)]
pub struct Pcap<D, W> {
    inner: D,
    tx: Slots,
    capture: Capture<W>,
}

#[derive(Debug)]
struct Capture<W> {
    sink: W,
    error: Option<io::Error>,
    /// Wall clock and driver's clock at the beginning.
    start: (Duration, Instant),
}

/// The capture file format of tcpdump with nanoseconds (draft-ietf-opsawg-pcap), in little-endian.
const MAGIC: u32 = 0xa1b2_3c4d;
/// `LINKTYPE_RAW`: packets begin with an IP header of either version.
const LINK_TYPE: u32 = 101;
/// No packet of the capture is longer.
const SNAP_LEN: u32 = 65_575;
/// What hosts send with.
const HOPS: u8 = 64;

impl<D: Driver, W: Write> Pcap<D, W> {
    /// `inner` with a capture that begins now; buffer `sink`, since every datagram is written apart.
    pub fn new(inner: D, sink: W) -> Self {
        Self::starting_at(inner, sink, SystemTime::now())
    }

    /// `inner` with a capture whose first moment is called `start`, to repeat one byte for byte in virtual time.
    pub fn starting_at(inner: D, mut sink: W, start: SystemTime) -> Self {
        let caps = inner.caps();
        let mut header = [0; 24];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&[2, 0, 4, 0]);
        header[16..20].copy_from_slice(&SNAP_LEN.to_le_bytes());
        header[20..].copy_from_slice(&LINK_TYPE.to_le_bytes());
        let error = sink.write_all(&header).err();
        let start = (start.duration_since(UNIX_EPOCH).unwrap_or_default(), inner.now());
        let tx = Slots::new(caps.tx_slots, caps.max_datagram);
        Self { inner, tx, capture: Capture { sink, error, start } }
    }

    /// Why the capture ended, if it has.
    pub fn error(&self) -> Option<&io::Error> {
        self.capture.error.as_ref()
    }

    /// The driver inside, and the sink.
    ///
    /// What is committed and not handed on is lost.
    pub fn into_parts(self) -> (D, W) {
        (self.inner, self.capture.sink)
    }
}

impl<D: Driver, W: Write> Driver for Pcap<D, W> {
    type Tx = Slots;

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn recv(
        &mut self,
        budget: usize,
        mut on_datagram: impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        let (now, local, capture) = (self.inner.now(), self.inner.local_addr(), &mut self.capture);
        self.inner.recv(budget, |meta, datagram| {
            let to = SocketAddr::new(meta.to.unwrap_or(local.ip()), local.port());
            capture.write(now, meta.from, to, meta.ecn, datagram);
            on_datagram(meta, datagram);
        })
    }

    fn tx(&mut self) -> &mut Self::Tx {
        &mut self.tx
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        let (now, local, capture) = (self.inner.now(), self.inner.local_addr(), &mut self.capture);
        pass_on(&mut self.tx, &mut self.inner, |meta: &TxMeta, datagram| {
            let from = SocketAddr::new(meta.from.unwrap_or(local.ip()), local.port());
            capture.write(now, from, meta.to, meta.ecn, datagram);
        })
    }
}

impl<D: Park, W: Write> Park for Pcap<D, W> {
    type Unparker = D::Unparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        self.inner.park(until)
    }

    fn unparker(&self) -> Self::Unparker {
        self.inner.unparker()
    }
}

#[cfg(unix)]
impl<D: Pollable, W: Write> Pollable for Pcap<D, W> {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.inner.poll_fd()
    }

    fn interest(&self) -> Interest {
        self.inner.interest()
    }
}

impl<W: Write> Capture<W> {
    fn write(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, ecn: Ecn, datagram: &[u8]) {
        if self.error.is_none() {
            let at = self.start.0 + now.saturating_since(self.start.1);
            self.error = self.try_write(at, from, to, ecn, datagram).err();
        }
    }

    fn try_write(
        &mut self,
        at: Duration,
        from: SocketAddr,
        to: SocketAddr,
        ecn: Ecn,
        datagram: &[u8],
    ) -> io::Result<()> {
        let (headers, len) = headers(from, to, ecn, datagram)?;
        let packet = (len + datagram.len()) as u32;
        let mut record = [0; 16];
        record[..4].copy_from_slice(&(at.as_secs() as u32).to_le_bytes());
        record[4..8].copy_from_slice(&at.subsec_nanos().to_le_bytes());
        // Captured and original length: nothing is cut.
        record[8..12].copy_from_slice(&packet.to_le_bytes());
        record[12..].copy_from_slice(&packet.to_le_bytes());
        self.sink.write_all(&record)?;
        self.sink.write_all(&headers[..len])?;
        self.sink.write_all(datagram)
    }
}

/// Room for the headers of either version, and how much of it they take.
type Headers = ([u8; Ipv6Header::LEN + UdpHeader::LEN], usize);

/// The IP and UDP headers of a datagram.
fn headers(from: SocketAddr, to: SocketAddr, ecn: Ecn, datagram: &[u8]) -> io::Result<Headers> {
    let udp_len = (UdpHeader::LEN + datagram.len()) as u16;
    let mut headers = [0; Ipv6Header::LEN + UdpHeader::LEN];
    let mut rest = &mut headers[..];
    match to.ip() {
        IpAddr::V4(destination) => {
            // Of another version only where nothing can be sent.
            let source = if let IpAddr::V4(ip) = from.ip() { ip } else { Ipv4Addr::UNSPECIFIED };
            let (source, destination) = (source.octets(), destination.octets());
            let ip = Ipv4Header::new(udp_len, HOPS, IpNumber::UDP, source, destination);
            let mut ip = ip.map_err(too_long)?;
            ip.ecn = mark(ecn);
            ip.write(&mut rest)?;
            UdpHeader::with_ipv4_checksum(from.port(), to.port(), &ip, datagram)
        }
        IpAddr::V6(destination) => {
            let source = if let IpAddr::V6(ip) = from.ip() { ip } else { Ipv6Addr::UNSPECIFIED };
            let ip = Ipv6Header {
                traffic_class: mark(ecn).value(),
                payload_length: udp_len,
                next_header: IpNumber::UDP,
                hop_limit: HOPS,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            ip.write(&mut rest)?;
            UdpHeader::with_ipv6_checksum(from.port(), to.port(), &ip, datagram)
        }
    }
    .map_err(too_long)?
    .write(&mut rest)?;
    let left = rest.len();
    Ok((headers, Ipv6Header::LEN + UdpHeader::LEN - left))
}

fn mark(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotEct => IpEcn::NotEct,
        Ecn::Ect0 => IpEcn::Ect0,
        Ecn::Ect1 => IpEcn::Ect1,
        Ecn::Ce => IpEcn::CongestionExperienced,
    }
}

fn too_long(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
