//! Frames that no system would send.

use std::net::SocketAddr;
use std::time::Duration;

use wraith_proto::Ecn;

use crate::driver::*;
use crate::options::{Attach, Options};
use crate::ring::{self, Setup};
use crate::testing::hosts;
use crate::veth::Side;

const PATIENCE: Duration = Duration::from_secs(20);

/// Sends frames as they are from `left` to a driver on `right`, and says which of them became datagrams.
fn lent(attach: Attach, checksums: Checksums, frames: &[Vec<u8>], ends: &Ends) -> (Vec<Vec<u8>>, Drops) {
    let (device, addr) = (ends.right.interface().to_owned(), ends.to);
    let mut driver = ends.right.run(move || {
        let options = Options { attach, checksums, ..Options::new(&device) };
        XdpDriver::bind(addr, &options).unwrap()
    });
    let device = ends.left.interface().to_owned();
    let setup = Setup {
        interface: device,
        queue: 0,
        chunk_bytes: 2048,
        receive_chunks: 16,
        slots: 64,
        slot_chunks: 1,
        zero_copy: false,
        several_chunks: false,
    };
    let (mut transmit, _receive) = ends.left.run(move || ring::open(&setup)).unwrap();
    let mut slots = transmit.take_slots();
    for frame in frames {
        let mut slot = slots.pop().unwrap();
        transmit.bytes(&mut slot)[..frame.len()].copy_from_slice(frame);
        transmit.push(slot, 0..frame.len());
    }
    assert_eq!(transmit.kick(false).unwrap().taken, frames.len());
    let mut datagrams = Vec::new();
    let until = driver.now().saturating_add(PATIENCE);
    while datagrams.last().is_none_or(|last| last != b"the last") {
        driver.recv(3, |_, data| datagrams.push(data.to_vec())).unwrap();
        assert!(driver.now() < until, "{datagrams:?}");
    }
    (datagrams, driver.drops())
}

struct Ends<'a> {
    left: &'a Side,
    right: &'a Side,
    to: SocketAddr,
}

impl Ends<'_> {
    fn frame(&self, payload: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let flow = Flow {
            source: self.left.mac(),
            destination: self.right.mac(),
            from: SocketAddr::new(self.left.ipv4().into(), 7),
            to: self.to,
            ecn: Ecn::Ect0,
        };
        let mut frame = vec![0; wire::IPV4_HEADERS];
        wire::write(&flow, &mut frame, payload);
        frame.extend_from_slice(payload);
        change(&mut frame);
        frame
    }
}

#[test]
fn malformed_frames_are_counted_and_those_behind_them_come() {
    let Some(veth) = hosts(&crate::veth::Options::default()) else { return };
    let to = SocketAddr::new(veth.right().ipv4().into(), 4000);
    let ends = Ends { left: veth.left(), right: veth.right(), to };
    let frames = [
        ends.frame(b"good", |_| ()),
        // The checksum of IP, of UDP, and a length that goes beyond the frame.
        ends.frame(b"bad IP", |frame| frame[24] ^= 1),
        ends.frame(b"bad UDP", |frame| frame[40] ^= 1),
        ends.frame(b"bad length", |frame| frame[17] += 9),
        ends.frame(b"", |_| ()),
        ends.frame(b"the last", |_| ()),
    ];
    let strict = [b"good".to_vec(), Vec::new(), b"the last".to_vec()];
    for attach in [Attach::Native, Attach::Generic] {
        let (datagrams, drops) = lent(attach, Checksums::Verify, &frames, &ends);
        assert_eq!((datagrams.as_slice(), drops), (strict.as_slice(), Drops { malformed: 3, no_room: 0 }));
    }
    let (datagrams, drops) = lent(Attach::Native, Checksums::Ignore, &frames, &ends);
    let lax = [b"good".to_vec(), b"bad UDP".to_vec(), Vec::new(), b"the last".to_vec()];
    assert_eq!((datagrams.as_slice(), drops), (lax.as_slice(), Drops { malformed: 2, no_room: 0 }));
}
