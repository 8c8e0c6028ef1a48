//! Features of devices, over generic netlink (the kernel's Documentation/networking/ethtool-netlink.rst).

use std::convert::Infallible;
use std::io;

use netlink_packet_core::{
    DefaultNla, Emitable, NLA_F_NESTED, NLA_HEADER_SIZE, NetlinkDeserializable, NetlinkHeader,
    NetlinkSerializable, NlasIterator,
};
use nix::sys::socket::SockProtocol;

use super::socket::{Socket, invalid};

/// A message of one family of generic netlink: a command, and attributes.
#[derive(Debug)]
struct Message {
    family: u16,
    command: u8,
    attributes: Vec<u8>,
}

/// `struct genlmsghdr`: command, version, two bytes unused.
const HEADER_BYTES: usize = 4;

/// The family that knows the numbers of the others (`linux/genetlink.h`).
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Of `linux/ethtool_netlink.h`.
const FEATURES_SET: u8 = 12;
const FEATURES_HEADER: u16 = 1;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const HEADER_DEVICE_NAME: u16 = 2;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Turns a feature of a device on, named as by `ethtool -k`; gives whether it was off before.
///
/// # Errors
/// `Unsupported`: the device does not turn it on.
pub(crate) fn turn_on(device: &str, feature: &str) -> io::Result<bool> {
    let mut socket = Socket::open(SockProtocol::NetlinkGeneric, 0)?;
    let name = string(FAMILY_NAME, "ethtool");
    let answer = socket.ask(Message { family: CONTROL, command: GET_FAMILY, attributes: bytes(&[name]) })?;
    let family = find(&answer.attributes, FAMILY_ID)?.and_then(|id| id.try_into().ok());
    let family = family.map(u16::from_ne_bytes).ok_or_else(|| invalid("a family without a number"))?;

    let device = string(HEADER_DEVICE_NAME, device);
    let bit = nested(BITS_BIT, &[string(BIT_NAME, feature), DefaultNla::new(BIT_VALUE, Vec::new())]);
    let bits = nested(BITSET_BITS, &[bit]);
    let attributes = bytes(&[nested(FEATURES_HEADER, &[device]), nested(FEATURES_WANTED, &[bits])]);
    let answer = socket.ask(Message { family, command: FEATURES_SET, attributes })?;
    // It says what is wanted but was not done, and what changed.
    if has_bits(&answer.attributes, FEATURES_WANTED)? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    has_bits(&answer.attributes, FEATURES_ACTIVE)
}

fn has_bits(attributes: &[u8], set: u16) -> io::Result<bool> {
    let set = find(attributes, set)?.unwrap_or_default();
    let bits = find(set, BITSET_BITS)?.unwrap_or_default();
    Ok(find(bits, BITS_BIT)?.is_some())
}

/// The value of an attribute.
fn find(attributes: &[u8], kind: u16) -> io::Result<Option<&[u8]>> {
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute.map_err(invalid)?;
        if attribute.kind() == kind {
            let value = NLA_HEADER_SIZE..attribute.length().into();
            return Ok(attribute.into_inner().get(value));
        }
    }
    Ok(None)
}

fn string(kind: u16, text: &str) -> DefaultNla {
    DefaultNla::new(kind, [text.as_bytes(), &[0]].concat())
}

fn nested(kind: u16, attributes: &[DefaultNla]) -> DefaultNla {
    DefaultNla::new(kind | NLA_F_NESTED, bytes(attributes))
}

fn bytes(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.family
    }

    fn buffer_len(&self) -> usize {
        HEADER_BYTES + self.attributes.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer[..HEADER_BYTES].copy_from_slice(&[self.command, 1, 0, 0]);
        buffer[HEADER_BYTES..].copy_from_slice(&self.attributes);
    }
}

impl NetlinkDeserializable for Message {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        Ok(Self {
            family: header.message_type,
            command: payload.first().copied().unwrap_or_default(),
            attributes: payload.get(HEADER_BYTES..).unwrap_or_default().to_vec(),
        })
    }
}
