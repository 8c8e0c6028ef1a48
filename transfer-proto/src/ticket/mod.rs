//! Tickets: everything a receiver needs, in one word (`PROTO §11`).

use crate::codec::{Malformed, Reader, end, put_varint};
use crate::message::{Kind, Token};
use crate::name::{MAX_NAME, NameRules, check_name_for};
use crate::tree::MAX_SIZE;
use crate::{Hash, PeerId, base32};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// Most addresses in a ticket.
pub const MAX_ADDRESSES: usize = 8;

/// Length of the longest ticket, characters.
pub const MAX_TICKET_TEXT: usize = PREFIX.len() + (MAX_BYTES * 8).div_ceil(5);

const PREFIX: &str = "wraith1";
const VERSION: u8 = 1;
const CHECKSUM: usize = 4;
const MAX_BYTES: usize = 2 + 32 + 8 + 1 + MAX_NAME + 32 + 16 + 1 + MAX_ADDRESSES * 19 + CHECKSUM;

/// What one person hands to another so that a content can be fetched and is what was meant.
///
/// The token makes it a secret: whoever has the ticket can fetch the content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// File or folder.
    pub kind: Kind,
    /// Content id: what `b3sum` prints.
    pub hash: Hash,
    /// Length of the content, bytes. A hint to show; the transfer proves the real one.
    pub size: u64,
    /// Proposed name; one path component that keeps the wire's rules.
    pub name: String,
    /// Who serves it.
    pub peer: PeerId,
    /// Proves to the server that the asker was given this ticket.
    pub token: Token,
    /// Where the server may be reached; at most [`MAX_ADDRESSES`].
    pub addresses: Vec<SocketAddr>,
}

impl Ticket {
    /// The ticket as text, to be read back by `parse`.
    ///
    /// # Errors
    ///
    /// A field that no ticket may have: size, name, peer, or addresses.
    pub fn encode(&self) -> Result<String, TicketError> {
        self.check()?;
        let mut bytes = Vec::with_capacity(MAX_BYTES);
        bytes.extend([VERSION, self.kind.to_byte()]);
        bytes.extend_from_slice(&self.hash);
        put_varint(&mut bytes, self.size);
        bytes.push(self.name.len() as u8);
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.extend_from_slice(self.peer.as_bytes());
        bytes.extend_from_slice(&self.token);
        bytes.push(self.addresses.len() as u8);
        for address in &self.addresses {
            put_address(&mut bytes, *address);
        }
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum);
        let mut text = String::with_capacity(PREFIX.len() + bytes.len() * 8 / 5 + 1);
        text.push_str(PREFIX);
        base32::encode(&bytes, &mut text);
        Ok(text)
    }

    fn decode(bytes: &[u8]) -> Result<Self, TicketError> {
        let (body, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(TicketError::Damaged)?;
        if checksum(body) != *sum {
            return Err(TicketError::Damaged);
        }
        let mut body = Reader::new(body);
        if body.u8() != Ok(VERSION) {
            return Err(TicketError::Version);
        }
        let ticket = Self::decode_fields(&mut body)?;
        end(body, ())?;
        ticket.check()?;
        Ok(ticket)
    }

    fn decode_fields(body: &mut Reader<'_>) -> Result<Self, TicketError> {
        let kind = Kind::from_byte(body.u8()?).ok_or(TicketError::Kind)?;
        let hash = *body.array()?;
        let size = body.varint()?;
        let len = body.u8()?;
        let name = core::str::from_utf8(body.take(usize::from(len))?).map_err(|_| TicketError::Name)?;
        let peer = PeerId::from_bytes(*body.array()?).map_err(|_| TicketError::Peer)?;
        let token = *body.array()?;
        let count = usize::from(body.u8()?);
        if count > MAX_ADDRESSES {
            return Err(TicketError::TooManyAddresses);
        }
        let mut addresses = Vec::with_capacity(count);
        for _ in 0..count {
            addresses.push(take_address(body)?);
        }
        Ok(Self { kind, hash, size, name: String::from(name), peer, token, addresses })
    }

    /// Rules that both ends of a ticket keep.
    fn check(&self) -> Result<(), TicketError> {
        if self.size > MAX_SIZE {
            return Err(TicketError::Size);
        }
        check_name_for(&self.name, NameRules::Wire).map_err(|_| TicketError::Name)?;
        if self.addresses.len() > MAX_ADDRESSES {
            return Err(TicketError::TooManyAddresses);
        }
        if !self.addresses.iter().all(is_reachable) {
            return Err(TicketError::Address);
        }
        Ok(())
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    /// Reads the one text form of a ticket; nothing around it, no other case, no padding.
    fn from_str(text: &str) -> Result<Self, TicketError> {
        let rest = text.strip_prefix("wraith").ok_or(TicketError::NotATicket)?;
        let encoded = match rest.strip_prefix('1') {
            Some(encoded) => encoded,
            None if rest.starts_with(|next: char| next.is_ascii_digit()) => return Err(TicketError::Version),
            None => return Err(TicketError::NotATicket),
        };
        if text.len() > MAX_TICKET_TEXT {
            return Err(TicketError::TooLong);
        }
        Self::decode(&base32::decode(encoded).ok_or(TicketError::Damaged)?)
    }
}

/// Why a text is no ticket, or values make none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TicketError {
    /// It does not begin like one.
    NotATicket,
    /// Of a version that is not known here.
    Version,
    /// A character is wrong, missing or too much.
    Damaged,
    /// Longer than any ticket.
    TooLong,
    /// The fields do not add up, though the checksum is right.
    Malformed,
    /// Neither file nor folder.
    Kind,
    /// A size that no content has.
    Size,
    /// The name is not one safe path component.
    Name,
    /// The peer id is no acceptable public key.
    Peer,
    /// More than [`MAX_ADDRESSES`].
    TooManyAddresses,
    /// An address that no peer can have: port 0, unspecified, multicast, broadcast, or IPv4 dressed as IPv6.
    Address,
}

impl fmt::Display for TicketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotATicket => "not a ticket: it must begin with `wraith1`",
            Self::Version => "a ticket of another version",
            Self::Damaged => "the ticket is damaged: copy it again, whole",
            Self::TooLong => "longer than any ticket",
            Self::Malformed => "the ticket's fields do not add up",
            Self::Kind => "the ticket is for neither a file nor a folder",
            Self::Size => "the ticket's size is impossible",
            Self::Name => "the ticket's name is not one safe path component",
            Self::Peer => "the ticket's peer id is not an acceptable public key",
            Self::TooManyAddresses => "the ticket has more than 8 addresses",
            Self::Address => "the ticket has an address that no peer can have",
        })
    }
}

impl core::error::Error for TicketError {}

impl From<Malformed> for TicketError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM] {
    let [a, b, c, d, ..] = blake3::derive_key("WRAITH v1 ticket checksum", body);
    [a, b, c, d]
}

fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&address.port().to_be_bytes());
}

fn take_address(body: &mut Reader<'_>) -> Result<SocketAddr, Malformed> {
    let ip = match body.u8()? {
        4 => IpAddr::V4(Ipv4Addr::from(*body.array::<4>()?)),
        6 => IpAddr::V6(Ipv6Addr::from(*body.array::<16>()?)),
        _ => return Err(Malformed),
    };
    Ok(SocketAddr::new(ip, body.u16()?))
}

fn is_reachable(address: &SocketAddr) -> bool {
    let ip = address.ip();
    let odd = match ip {
        IpAddr::V4(ip) => ip.is_broadcast(),
        IpAddr::V6(ip) => ip.to_ipv4_mapped().is_some(),
    };
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !odd
}

#[cfg(test)]
mod tests;
