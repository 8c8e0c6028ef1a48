//! An established session, and what every packet of the subject in it has to keep to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use wraith_proto::wire::{
    AckRepr, ConnectionId, Frame, HandshakeKind, Writer, frame_kind as kind, visible_destination,
};

use crate::case::{Outcome, Verdict, ensure};
use crate::peer::{Channel, Opened, Profile, Role};

/// Frames of an acknowledgement.
const ACK_ROOM: usize = 1024;

/// One end of a session with the subject.
pub(crate) struct Talk {
    pub(crate) channel: Channel,
    profile: Profile,
    sent: BTreeSet<u64>,
    acked: BTreeSet<u64>,
    closed: Option<Closed>,
    /// Ids of the subject by sequence number.
    ids: BTreeMap<u64, ConnectionId>,
    /// Further ids of this end.
    own_ids: Vec<ConnectionId>,
    /// Credit of streams that was raised.
    credit: BTreeMap<u32, u64>,
    /// Ends of what the subject sent on its streams.
    pub(crate) heard: BTreeMap<u32, u64>,
    /// Frames with application data, or about a stream.
    pub(crate) data: u32,
    /// The epoch of the packet that was heard last.
    pub(crate) epoch: u32,
}

/// The CLOSE that the subject sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Closed {
    pub(crate) application: bool,
    pub(crate) code: u32,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.application { "CLOSE_APP" } else { "CLOSE" }, self.code)
    }
}

impl Talk {
    pub(crate) fn new(channel: Channel, profile: &Profile) -> Self {
        let ids = BTreeMap::from([(0, channel.remote_id())]);
        Self {
            channel,
            profile: profile.clone(),
            sent: BTreeSet::new(),
            acked: BTreeSet::new(),
            closed: None,
            ids,
            own_ids: Vec::new(),
            credit: BTreeMap::new(),
            heard: BTreeMap::new(),
            data: 0,
            epoch: 0,
        }
    }

    /// The next packet with these frames, and its number.
    pub(crate) fn seal(&mut self, frames: &[Frame<'_>], data: &[u8]) -> (u64, Vec<u8>) {
        let number = self.spend();
        for frame in frames {
            if let Frame::MaxStreamData { stream, credit } = *frame {
                let most = self.credit.entry(stream).or_insert(self.profile.stream_credit);
                *most = credit.max(*most);
            }
            if let Frame::NewConnectionId { id, .. } = *frame {
                self.own_ids.push(id);
            }
        }
        (number, self.channel.seal(frames, data))
    }

    /// The next packet with these bytes in the place of frames.
    pub(crate) fn seal_bytes(&mut self, frames: &[u8], data: &[u8]) -> (u64, Vec<u8>) {
        (self.spend(), self.channel.seal_bytes(frames, data))
    }

    /// The next packet with these bytes and frames.
    pub(crate) fn seal_after(&mut self, bytes: &[u8], frames: &[Frame<'_>]) -> (u64, Vec<u8>) {
        let mut all = bytes.to_vec();
        all.extend(encode(frames));
        self.seal_bytes(&all, &[])
    }

    /// The next packet with this body.
    pub(crate) fn seal_body(&mut self, body: Vec<u8>) -> (u64, Vec<u8>) {
        (self.spend(), self.channel.seal_body(body))
    }

    /// Notes that a packet with the next number is sent.
    pub(crate) fn spend(&mut self) -> u64 {
        self.sent.insert(self.channel.next_number());
        self.channel.next_number()
    }

    /// Notes that a packet with this number is sent.
    pub(crate) fn note(&mut self, number: u64) {
        self.sent.insert(number);
    }

    /// An ACK of everything that was heard.
    pub(crate) fn ack(&self) -> Vec<u8> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &number in self.channel.received().iter().rev() {
            match ranges.last_mut() {
                Some((low, _)) if *low == number + 1 => *low = number,
                _ => ranges.push((number, number)),
            }
        }
        ack_of(&ranges)
    }

    /// Opens a packet of the subject and checks what holds for every one of them.
    pub(crate) fn open(&mut self, datagram: &[u8]) -> Outcome<Opened> {
        ensure!(
            datagram.len() as u64 <= self.profile.max_datagram,
            "§2.1: a datagram of {} bytes, where {} was the limit",
            datagram.len(),
            self.profile.max_datagram
        );
        let opened = self.channel.open(datagram)?;
        self.epoch = opened.epoch;
        for (frame, _) in opened.frames()? {
            self.data += u32::from((kind::DATAGRAM..=kind::HOLES_TAKEN).contains(&frame.kind()));
            self.check(&frame)?;
        }
        Ok(opened)
    }

    /// Whether packet `number` was acknowledged.
    pub(crate) fn is_acked(&self, number: u64) -> bool {
        self.acked.contains(&number)
    }

    /// The end of the session, if it was announced.
    pub(crate) fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// Whether an id addresses this end.
    pub(crate) fn is_own(&self, id: ConnectionId) -> bool {
        self.channel.own_id() == id || self.own_ids.contains(&id)
    }

    /// Ids that the subject gave, by their sequence numbers.
    pub(crate) fn ids(&self) -> &BTreeMap<u64, ConnectionId> {
        &self.ids
    }

    /// The number of a stream that this end opens.
    pub(crate) fn own_stream(&self, unidirectional: bool, sequence: u32) -> u32 {
        let opener = u32::from(self.channel.role() == Role::Responder);
        sequence << 2 | u32::from(unidirectional) << 1 | opener
    }

    /// The number of a stream that the subject opens.
    pub(crate) fn its_stream(&self, unidirectional: bool, sequence: u32) -> u32 {
        self.own_stream(unidirectional, sequence) ^ 1
    }

    fn check(&mut self, frame: &Frame<'_>) -> Outcome {
        match *frame {
            Frame::Ack(ref ack) => {
                for (low, high) in ack.ranges() {
                    let all = self.sent.range(low..=high).count() as u64 == high - low + 1;
                    ensure!(all, "§6.4: it acknowledges {low} to {high}, of which not all were sent");
                    self.acked.extend(low..=high);
                }
            }
            Frame::Close { code } => self.closed = Some(Closed { application: false, code }),
            Frame::CloseApp { code } => self.closed = Some(Closed { application: true, code }),
            Frame::NewConnectionId { sequence, retire_prior_to, id } => {
                ensure!(retire_prior_to <= sequence, "§6.6: retire-prior-to is above the sequence number");
                let known = self.ids.insert(sequence, id);
                ensure!(
                    known.is_none_or(|known| known == id),
                    "§6.6: id {sequence} is given with another value"
                );
                self.ids.retain(|&sequence, _| sequence >= retire_prior_to);
                ensure!(self.ids.len() <= 4, "§6.6: a fifth id");
            }
            Frame::Stream { stream, offset, len, .. } => {
                let end = offset + u64::from(len);
                let credit = self.credit.get(&stream).copied().unwrap_or(self.profile.stream_credit);
                ensure!(end <= credit, "§7.2: stream {stream} reaches {end}, beyond its credit of {credit}");
                let heard = self.heard.entry(stream).or_default();
                *heard = end.max(*heard);
                let own = stream & 1 == self.own_stream(false, 0);
                ensure!(
                    !own || stream & 2 == 0,
                    "§7.1: it sends on this end's unidirectional stream {stream}"
                );
                let allowed = u64::from(stream >> 2) < self.profile.streams;
                ensure!(
                    own || allowed,
                    "§7.1: it opens stream {stream}, where {} are allowed",
                    self.profile.streams
                );
            }
            Frame::Authorized => {
                ensure!(self.channel.role() == Role::Initiator, "§6.7: AUTHORIZED of an initiator");
            }
            _ => {}
        }
        Ok(())
    }

    /// Forgets an id of the subject that this end retires.
    pub(crate) fn retire(&mut self, sequence: u64) {
        self.ids.remove(&sequence);
    }
}

/// The bytes of frames.
pub(crate) fn encode(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; frames.iter().map(Frame::encoded_len).sum()];
    let mut writer = Writer::new(&mut bytes);
    for frame in frames {
        frame.emit(&mut writer).expect("the room is that of the frames");
    }
    bytes
}

/// An ACK of these ranges, lowest and highest, newest first.
pub(crate) fn ack_of(ranges: &[(u64, u64)]) -> Vec<u8> {
    let mut room = [0; ACK_ROOM];
    let mut writer = Writer::new(&mut room);
    let ack = AckRepr { ranges: ranges.iter().copied(), delay_micros: 0, ecn: None };
    ack.emit(&mut writer).expect("64 ranges fit");
    writer.written().to_vec()
}

/// What a datagram is, for messages.
pub(crate) fn describe(datagram: &[u8]) -> String {
    let kind = match HandshakeKind::of(datagram) {
        Some(HandshakeKind::Init) => "INIT",
        Some(HandshakeKind::Response) => "RESPONSE",
        Some(HandshakeKind::Finish) => "FINISH",
        Some(HandshakeKind::Cookie) => "COOKIE",
        Some(HandshakeKind::Versions) => "VERSIONS",
        None if visible_destination(datagram).is_some() => "a protected packet",
        None => "an unknown datagram",
    };
    format!("{kind} of {} bytes", datagram.len())
}

impl From<Closed> for Verdict {
    fn from(closed: Closed) -> Self {
        Self::Fail(format!("the session ended with {closed}"))
    }
}
