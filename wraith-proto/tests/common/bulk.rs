//! An application that sends as much as it is let, and checks what comes.

use wraith_proto::{Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_sim::Host;

/// The byte of every stream at `offset`: a pattern that no shift maps to itself.
fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Sends and checks streams of the pattern, and keeps events.
#[derive(Debug, Default)]
pub(crate) struct Bulk {
    pub(crate) received: u64,
    pub(crate) datagrams: Vec<usize>,
    pub(crate) events: Vec<Event>,
}

impl Bulk {
    pub(crate) fn count(&self, event: Event) -> usize {
        self.events.iter().filter(|&&seen| seen == event).count()
    }

    pub(crate) fn delivered(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Delivered(_))).count()
    }
}

impl Source for Bulk {
    fn fill(&mut self, _: SessionHandle, _: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        (offset..).zip(&mut *buf).for_each(|(at, byte)| *byte = byte_at(at));
        buf.len()
    }
}

impl Host for Bulk {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        match payload {
            Payload::Stream { offset, data, .. } => {
                self.received += data.len() as u64;
                let right = (offset..).zip(&*data).all(|(at, &byte)| byte == byte_at(at));
                assert!(right, "wrong bytes at {offset}");
            }
            Payload::Datagram { data, .. } => self.datagrams.push(data.len()),
            _ => {}
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, event: Event) {
        self.events.push(event);
    }
}
