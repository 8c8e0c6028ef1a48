//! A second implementation of the wire protocol, written from `docs/PROTOCOL.md` and apart from the core.
//!
//! It exists to be compared with: what the document says is enough if this peer and any other implementation
//! understand each other. Only the encodings of `wraith_proto::wire` are shared. It keeps no clock, repeats nothing by
//! itself and holds no policy, and every message can be changed before it leaves, for a tool that has to break rules.
//!
//! - [`Identity`], [`KeyPair`]: keys (`PROTO §3.1` to `§3.3`).
//! - [`Noise`]: the XX handshake (`PROTO §3.4`). It can be cloned, so that one state reads many copies of a message.
//! - [`Root`], [`Keys`], [`HeaderKey`]: the key schedule and packet protection (`PROTO §3.5` to `§3.7`, `§5`).
//! - [`Dial`] and [`Reception`]: the handshake of both roles (`PROTO §4`), which end in a [`Channel`].
//! - [`seal_message`], [`open_message`], those of datagrams and of notes: sealed messages (`PROTO §12`).
//! - [`dht`]: datagrams of the DHT (`PROTO §14`).
//! - [`Parameters`], [`Profile`]: what an end says of itself (`PROTO §4.4`).

mod channel;
pub mod dht;
mod dial;
mod identity;
mod keys;
mod noise;
mod parameters;
pub(crate) mod points;
mod protect;
mod reception;
mod sealed;

use std::fmt;

pub use channel::{Channel, Opened, Plain};
pub use dial::{Answer, Dial, Met};
pub use identity::{Identity, KeyPair, peer_id_text, x25519_form};
pub use keys::{Direction, KeyMaterial, Root, finish_mac, finish_mac_key};
pub use noise::{Noise, Role};
pub use parameters::{Introduction, Parameters, Profile};
pub use protect::{AES_256_GCM, HeaderKey, Keys, TAG_LEN, XCHACHA20_POLY1305};
pub use reception::{Reception, Response};
pub(crate) use sealed::sign_with;
pub use sealed::{
    Letter, Making, Note, Opened as OpenedMessage, open_datagram, open_message, open_note, seal_datagram,
    seal_message, seal_note,
};

/// A message that this peer does not accept, and which rule it breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused(pub &'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

/// What both ends mix into the Noise handshake first (`PROTO §3.4`).
pub(crate) fn prologue(version: u32) -> Vec<u8> {
    [&b"WRAITH"[..], &version.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests;
