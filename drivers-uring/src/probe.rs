//! What the system lets us do, found out by doing it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::refusal::{Reason, Refusal, Step};
use crate::ring::{Completion, Ring, Send, Setup};
use crate::waker::Waker;
use crate::wire::{Control, Name, RX_PAYLOAD};

/// What passes through the ring on trial.
const WORD: &[u8] = b"wraith";
/// How often a trial looks for its datagram, and how long each look may take.
const LOOKS: usize = 20;
const LOOK: Duration = Duration::from_millis(50);

/// Tries a ring in every way that the driver uses one: a datagram goes out of it and comes back through it.
///
/// # Errors
/// What was refused, and why.
pub fn probe() -> Result<(), Refusal> {
    let local = |error: io::Error| Refusal::new(Step::Trial, &error);
    let (inner, outer) = UnixDatagram::pair().map_err(local)?;
    let waker = Waker::new().map_err(local)?;
    let setup =
        Setup { buffers: 2, buffer_bytes: WORD.len(), transmit_bytes: WORD.len(), ..Setup::default() };
    let (mut ring, mut memory) = Ring::new(&setup, inner.as_fd(), waker.as_fd())?;
    ring.check_operations()?;
    if let Some(room) = memory.bytes(0..WORD.len()) {
        room.copy_from_slice(WORD);
    }
    outer.send(WORD).map_err(local)?;
    exchange(&mut ring).map_err(local)?;
    let mut word = [0; WORD.len()];
    outer.set_nonblocking(true).map_err(local)?;
    match outer.recv(&mut word) {
        Ok(_) if word == WORD => Ok(()),
        _ => Err(Refusal { step: Step::Trial, reason: Reason::Unsupported }),
    }
}

/// Sends the word out of the ring and receives one.
fn exchange(ring: &mut Ring) -> io::Result<()> {
    ring.start()?;
    let (data, name) = (0..WORD.len(), &Name::NONE);
    ring.send(&Send { index: 0, slot: 0, data, name, control: &Control::NONE, linked: false });
    ring.submit_chain()?;
    let (mut sent, mut received) = (false, false);
    for _ in 0..LOOKS {
        ring.wait(Some(LOOK))?;
        while let Some(completion) = ring.next() {
            match completion {
                Completion::Sent { result: 0, .. } => sent = true,
                Completion::Sent { result: code, .. } => return Err(io::Error::from_raw_os_error(-code)),
                Completion::Received { buffer, len } => {
                    let bytes = ring.buffers().get_mut(buffer);
                    received = bytes.and_then(|bytes| bytes.get(RX_PAYLOAD..len)) == Some(WORD);
                    ring.buffers().give(buffer);
                }
                Completion::ReceiveFailed { error } => return Err(io::Error::from_raw_os_error(error)),
                Completion::Arrived
                | Completion::Released { .. }
                | Completion::Woken
                | Completion::Replaced => {}
            }
        }
        if sent && received {
            return Ok(());
        }
    }
    Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}
