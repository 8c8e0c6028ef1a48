//! Protected packets of an established session (`PROTO §5`).

use std::collections::{BTreeMap, BTreeSet};

use wraith_proto::wire::{ConnectionId, Frame, FrameError, Frames, Writer, apply_mask};

use super::Refused;
use super::identity::KeyPair;
use super::keys::{Direction, Root};
use super::noise::{Noise, Role};
use super::parameters::Introduction;
use super::protect::{HeaderKey, Keys, TAG_LEN};

/// Bytes of the header (`PROTO §5.1`).
const HEADER: usize = 13;

/// Bits of the first byte that are zero (`PROTO §5.2`).
const RESERVED: u8 = 0b1100;

/// One end of an established session: seals and opens its packets.
#[derive(Clone, Debug)]
pub struct Channel {
    role: Role,
    handshake: Noise,
    suite: u16,
    own_id: ConnectionId,
    remote_id: ConnectionId,
    theirs: Introduction,
    epochs: BTreeMap<u32, Epoch>,
    /// The epoch that this end sends in.
    sending: u32,
    /// This end's share of the exchange for the epoch behind the newest.
    share: Option<KeyPair>,
    seal_header: HeaderKey,
    open_header: HeaderKey,
    next: u64,
    received: BTreeSet<u64>,
}

/// The keys of one epoch (`PROTO §5.13`).
#[derive(Clone, Copy, Debug)]
struct Epoch {
    root: Root,
    seal: Keys,
    open: Keys,
}

impl Epoch {
    fn new(role: Role, root: Root, epoch: u32, suite: u16) -> Result<Self, Refused> {
        let (out, back) = directions(role);
        Ok(Self {
            root,
            seal: Keys::new(suite, root.packet(epoch, out, suite))?,
            open: Keys::new(suite, root.packet(epoch, back, suite))?,
        })
    }
}

/// The directions in which an end of this role sends and receives.
fn directions(role: Role) -> (Direction, Direction) {
    match role {
        Role::Initiator => (Direction::ToResponder, Direction::ToInitiator),
        Role::Responder => (Direction::ToInitiator, Direction::ToResponder),
    }
}

/// A packet to be sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plain {
    /// The first byte before header protection (`PROTO §5.2`).
    pub first: u8,
    /// Whom it is for.
    pub destination: ConnectionId,
    /// The full packet number.
    pub number: u64,
    /// All that is encrypted (`PROTO §5.4`).
    pub body: Vec<u8>,
}

impl Plain {
    /// The header before protection: the additional data (`PROTO §5.5`).
    pub fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[0] = self.first;
        header[1..9].copy_from_slice(&self.destination.0);
        header[9..].copy_from_slice(&(self.number as u32).to_be_bytes());
        header
    }
}

/// A packet that was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// The first byte without header protection.
    pub first: u8,
    /// The full packet number.
    pub number: u64,
    /// The epoch of its key.
    pub epoch: u32,
    /// All that was encrypted.
    pub body: Vec<u8>,
}

impl Opened {
    /// The bytes of the data-bearing frames, and the bytes of the frames (`PROTO §5.4`).
    ///
    /// # Errors
    /// [`Refused`] if the lengths do not add up.
    pub fn parts(&self) -> Result<(&[u8], &[u8]), Refused> {
        const RULE: Refused = Refused("§5.4: the lengths of the body do not add up");
        let (rest, len) = self.body.split_last_chunk().ok_or(RULE)?;
        let data = rest.len().checked_sub(usize::from(u16::from_be_bytes(*len))).ok_or(RULE)?;
        Ok(rest.split_at(data))
    }

    /// The frames with the bytes of each that bears data (`PROTO §5.4`).
    ///
    /// # Errors
    /// [`Refused`] if a frame is malformed or the lengths do not add up.
    pub fn frames(&self) -> Result<Vec<(Frame<'_>, &[u8])>, Refused> {
        let (mut data, frames) = self.parts()?;
        let mut said = Vec::new();
        for frame in Frames::new(frames) {
            let frame = frame.map_err(|error| match error {
                FrameError::UnknownType(_) => Refused("§6.2: an unknown frame type"),
                _ => Refused("§6.1: a malformed frame"),
            })?;
            let (own, rest) = data
                .split_at_checked(frame.data_len())
                .ok_or(Refused("§5.4: the lengths of the body do not add up"))?;
            said.push((frame, own));
            data = rest;
        }
        if data.is_empty() { Ok(said) } else { Err(Refused("§5.4: the lengths of the body do not add up")) }
    }
}

impl Channel {
    pub(super) fn new(
        role: Role,
        handshake: Noise,
        own_id: ConnectionId,
        remote_id: ConnectionId,
        theirs: Introduction,
    ) -> Result<Self, Refused> {
        let (out, back) = directions(role);
        let suite = theirs.suite;
        let root = Root::new(&handshake);
        Ok(Self {
            role,
            handshake,
            suite,
            own_id,
            remote_id,
            theirs,
            epochs: BTreeMap::from([(0, Epoch::new(role, root, 0, suite)?)]),
            sending: 0,
            share: None,
            seal_header: HeaderKey::new(suite, root.header(out, suite))?,
            open_header: HeaderKey::new(suite, root.header(back, suite))?,
            next: 0,
            received: BTreeSet::new(),
        })
    }

    /// The next packet, with these frames and the bytes of those that bear data.
    ///
    /// # Panics
    /// If a frame has a number without encoding, or all of them more than 65,535 bytes.
    pub fn seal(&mut self, frames: &[Frame<'_>], data: &[u8]) -> Vec<u8> {
        let mut room = vec![0; frames.iter().map(Frame::encoded_len).sum()];
        let mut writer = Writer::new(&mut room);
        for frame in frames {
            frame.emit(&mut writer).expect("the room is that of the frames");
        }
        self.seal_bytes(&room, data)
    }

    /// The next packet, with these bytes in the place of frames.
    ///
    /// # Panics
    /// If they are more than 65,535.
    pub fn seal_bytes(&mut self, frames: &[u8], data: &[u8]) -> Vec<u8> {
        let len = u16::try_from(frames.len()).expect("a datagram is smaller than that");
        self.seal_body([data, frames, &len.to_be_bytes()].concat())
    }

    /// The next packet, with this body.
    pub fn seal_body(&mut self, body: Vec<u8>) -> Vec<u8> {
        let plain = self.plain(body);
        self.next += 1;
        self.seal_plain(&plain)
    }

    /// The next packet before it is sealed; its number is not spent.
    pub fn plain(&self, body: Vec<u8>) -> Plain {
        // The bit that is random and ignored (`PROTO §5.2`): random enough for those who ignore it.
        let ignored = self.own_id.0[0].wrapping_add(self.next as u8) & 1;
        let first = 0b0100_0000 | ignored << 4 | phase(self.sending);
        Plain { first, destination: self.remote_id, number: self.next, body }
    }

    /// Seals a packet as it is, with the key of the epoch that this end sends in.
    pub fn seal_plain(&self, plain: &Plain) -> Vec<u8> {
        let header = plain.header();
        let mut packet = header.to_vec();
        let key = self.epochs[&self.sending].seal;
        packet.extend(key.seal(plain.number, &header, &plain.body));
        let mask = self.seal_header.mask(&sample(&packet));
        apply_mask(&mut packet, mask);
        packet
    }

    /// Opens a packet of the other end.
    ///
    /// # Errors
    /// [`Refused`] with the rule that it breaks.
    pub fn open(&mut self, packet: &[u8]) -> Result<Opened, Refused> {
        if packet.len() < HEADER + TAG_LEN || packet[0] >> 5 != 0b010 {
            return Err(Refused("§5.1: no protected packet"));
        }
        let mut packet = packet.to_vec();
        let mask = self.open_header.mask(&sample(&packet));
        apply_mask(&mut packet, mask);
        let (header, sealed) = packet.split_at(HEADER);
        let low = header.last_chunk().map_or(0, |low| u32::from_be_bytes(*low));
        let number = nearest(self.received.last().map_or(0, |last| last + 1), low);
        let epoch = self.epochs.iter().rev().find(|(epoch, _)| phase(**epoch) == header[0] & 0b11);
        let (&epoch, keys) = epoch.ok_or(Refused("§5.10: a key phase without a key"))?;
        let body = keys.open.open(number, header, sealed)?;
        if header[0] & RESERVED != 0 {
            return Err(Refused("§5.2: a reserved bit"));
        }
        if !self.received.insert(number) {
            return Err(Refused("§5.3: a packet number that was used before"));
        }
        Ok(Opened { first: header[0], number, epoch, body })
    }

    /// Begins or answers the exchange for the next epoch; returns its number and the share to send (`PROTO §5.14`).
    pub fn offer(&mut self, share: KeyPair) -> (u32, [u8; 32]) {
        self.share = Some(share);
        (self.newest() + 1, share.public)
    }

    /// Takes the other end's share; the keys of the next epoch are there (`PROTO §5.15`).
    ///
    /// # Errors
    /// [`Refused`] without a share of this end, or if the shared secret is zero.
    pub fn take(&mut self, theirs: &[u8; 32]) -> Result<(), Refused> {
        let own = self.share.take().ok_or(Refused("§5.14: a share that answers none"))?;
        let shared = own.agree(theirs)?;
        let (initiator, responder) = match self.role {
            Role::Initiator => (&own.public, theirs),
            Role::Responder => (theirs, &own.public),
        };
        let epoch = self.newest() + 1;
        let root = self.epochs[&self.newest()].root.next(&shared, initiator, responder, epoch);
        self.epochs.insert(epoch, Epoch::new(self.role, root, epoch, self.suite)?);
        // Three receiving keys are the most that there are (`PROTO §5.17`).
        self.epochs.retain(|former, _| former + 3 > epoch);
        Ok(())
    }

    /// Sends in this epoch from now on.
    ///
    /// # Panics
    /// If its keys are not there.
    pub fn send_in(&mut self, epoch: u32) {
        assert!(self.epochs.contains_key(&epoch), "there are no keys of epoch {epoch}");
        self.sending = epoch;
    }

    /// The newest epoch whose keys are there.
    pub fn newest(&self) -> u32 {
        self.epochs.last_key_value().map_or(0, |(epoch, _)| *epoch)
    }

    /// This end's role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The root secret of epoch 0.
    pub fn root(&self) -> Root {
        Root::new(&self.handshake)
    }

    /// The Noise state after the third message.
    pub fn handshake(&self) -> &Noise {
        &self.handshake
    }

    /// What the other end said of itself.
    pub fn theirs(&self) -> &Introduction {
        &self.theirs
    }

    /// The id by which the other end addresses this one.
    pub fn own_id(&self) -> ConnectionId {
        self.own_id
    }

    /// The id by which this end addresses the other.
    pub fn remote_id(&self) -> ConnectionId {
        self.remote_id
    }

    /// Addresses the other end by another of its ids (`PROTO §5.11`).
    pub fn address_by(&mut self, id: ConnectionId) {
        self.remote_id = id;
    }

    /// The number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Leaves numbers out: the next packet has this one.
    pub fn skip_to(&mut self, number: u64) {
        self.next = number;
    }

    /// The packet numbers that were opened.
    pub fn received(&self) -> &BTreeSet<u64> {
        &self.received
    }
}

/// The key phase of an epoch (`PROTO §5.2`).
fn phase(epoch: u32) -> u8 {
    (epoch % 4) as u8
}

/// The bytes that the mask is made of (`PROTO §5.7`).
fn sample(packet: &[u8]) -> [u8; 16] {
    packet.get(HEADER..).and_then(|sealed| sealed.first_chunk()).copied().unwrap_or_default()
}

/// The full number with these low bits that is nearest to the expected one (`PROTO §5.3`).
fn nearest(expected: u64, low: u32) -> u64 {
    let around = (expected >> 32).saturating_sub(1)..=(expected >> 32) + 1;
    let candidates = around.map(|high| high << 32 | u64::from(low)).filter(|number| *number < 1 << 62);
    candidates.min_by_key(|number| number.abs_diff(expected)).unwrap_or(u64::from(low))
}
