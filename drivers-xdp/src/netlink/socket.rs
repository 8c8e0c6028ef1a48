//! A netlink socket: requests out, their answers in.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_ERROR, NetlinkBuffer, NetlinkDeserializable,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, connect, recv, send,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// What the kernel puts into one part of a dump at the most (`NLMSG_GOODSIZE`, `min_dump_alloc`); single entries are shorter.
const ANSWER_BYTES: usize = 32 << 10;

/// The answer is there when the request has been sent; a kernel that does otherwise must not hold a driver.
const PATIENCE_MS: i64 = 500;

/// Parts that are read for one request: a host has fewer addresses than fit in so many.
const MAX_PARTS: usize = 1024;

/// Bytes of `struct nlmsghdr` (`linux/netlink.h`).
const HEADER_BYTES: usize = 16;

/// A socket of netlink, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    sequence: u32,
    answer: Box<[u8]>,
}

/// Messages of one protocol.
pub(super) trait Message: NetlinkSerializable + NetlinkDeserializable {}

impl<M: NetlinkSerializable + NetlinkDeserializable> Message for M {}

/// What to do after a message.
enum Next {
    More,
    Done,
}

impl Socket {
    /// `groups` are those whose announcements it shall get: bits of `RTMGRP_*`, 0 for none.
    pub(super) fn open(protocol: SockProtocol, groups: u32) -> io::Result<Self> {
        let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        // Connected to the kernel, it takes nothing from other programs.
        connect(fd.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::milliseconds(PATIENCE_MS))?;
        Ok(Self { fd, sequence: 0, answer: vec![0; ANSWER_BYTES].into_boxed_slice() })
    }

    /// Asks for one entry of a table.
    pub(super) fn ask<M: Message>(&mut self, request: M) -> io::Result<M> {
        let mut answer = None;
        self.exchange(request, NLM_F_REQUEST, |message| {
            answer = Some(message);
            Next::Done
        })?;
        answer.ok_or_else(|| invalid("an acknowledgement without an answer"))
    }

    /// Asks for one entry without allocating: `request` is a whole message but for its sequence number. Gives the type of the
    /// answer, and what stands behind its header.
    pub(super) fn ask_for_one(&mut self, request: &mut [u8]) -> io::Result<(u16, &[u8])> {
        self.sequence = self.sequence.wrapping_add(1);
        request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        send(self.fd.as_raw_fd(), request, MsgFlags::empty())?;
        // What a former request left unread is passed over.
        for _ in 0..MAX_PARTS {
            let len = self.receive()?;
            let header = NetlinkBuffer::new_checked(&self.answer[..len]).map_err(invalid)?;
            if header.sequence_number() == self.sequence {
                let (kind, body) = (header.message_type(), HEADER_BYTES..header.length() as usize);
                let body = self.answer.get(body).unwrap_or_default();
                return if kind == NLMSG_ERROR { Err(error_in(body)) } else { Ok((kind, body)) };
            }
        }
        Err(invalid("an answer without an end"))
    }

    /// Asks for a whole table, and gives its entries to `each`.
    ///
    /// # Errors
    /// `Interrupted`: it changed meanwhile, and an entry may be missing.
    pub(super) fn ask_all<M: Message>(&mut self, request: M, mut each: impl FnMut(M)) -> io::Result<()> {
        self.exchange(request, NLM_F_REQUEST | NLM_F_DUMP, |message| {
            each(message);
            Next::More
        })
    }

    /// Changes a table; `flags` say how beside `NLM_F_REQUEST` and `NLM_F_ACK`.
    #[cfg(any(test, feature = "veth"))]
    pub(super) fn change<M: Message>(&mut self, request: M, flags: u16) -> io::Result<()> {
        self.exchange(request, NLM_F_REQUEST | netlink_packet_core::NLM_F_ACK | flags, |_| Next::More)
    }

    /// Waits for an announcement of its groups, whatever it says; `TimedOut` if none came in half a second.
    #[cfg(any(test, feature = "veth"))]
    pub(super) fn await_announcement(&mut self) -> io::Result<()> {
        self.receive().map(drop)
    }

    /// Sends a request and reads until its end: an acknowledgement, an error, the end of a dump, or what `each` takes for it.
    fn exchange<M: Message>(
        &mut self,
        request: M,
        flags: u16,
        mut each: impl FnMut(M) -> Next,
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        send(self.fd.as_raw_fd(), &bytes, MsgFlags::empty())?;
        // A table that changed is read to its end all the same: the kernel gives no other one before.
        let mut whole = true;
        for _ in 0..MAX_PARTS {
            let len = self.receive()?;
            if let Next::Done = each_message(&self.answer[..len], self.sequence, &mut whole, &mut each)? {
                return if whole { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) };
            }
        }
        Err(invalid("an answer without an end"))
    }

    /// Reads one part of an answer, and gives its length.
    fn receive(&mut self) -> io::Result<usize> {
        // With MSG_TRUNC the length is the true one, longer than the room if something was cut off.
        loop {
            match recv(self.fd.as_raw_fd(), &mut self.answer, MsgFlags::MSG_TRUNC) {
                Ok(len) if len > self.answer.len() => return Err(invalid("an answer longer than its room")),
                Ok(len) => return Ok(len),
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::EAGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The error that an answer tells (`struct nlmsgerr`), zero among them: there is nothing to acknowledge.
fn error_in(body: &[u8]) -> io::Error {
    match body.first_chunk::<4>().map(|code| i32::from_ne_bytes(*code)) {
        Some(code) if code < 0 => io::Error::from_raw_os_error(-code),
        _ => invalid("an acknowledgement without an answer"),
    }
}

/// Gives the messages of a part to `each`; those that answer another request are what a former one left unread.
fn each_message<M: Message>(
    mut bytes: &[u8],
    sequence: u32,
    whole: &mut bool,
    each: &mut impl FnMut(M) -> Next,
) -> io::Result<Next> {
    while !bytes.is_empty() {
        let header = NetlinkBuffer::new_checked(bytes).map_err(invalid)?;
        let len = header.length() as usize;
        if header.sequence_number() == sequence {
            *whole &= header.flags() & NLM_F_DUMP_INTR == 0;
            match NetlinkMessage::<M>::deserialize(&bytes[..len]).map_err(invalid)?.payload {
                NetlinkPayload::InnerMessage(message) => {
                    if let Next::Done = each(message) {
                        return Ok(Next::Done);
                    }
                }
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code));
                }
                NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(Next::Done),
                _ => {}
            }
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Next::More)
}

pub(super) fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::ErrorMessage;
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::link::LinkMessage;

    use super::*;

    /// An answer about the device `index`.
    fn link(sequence: u32, index: u32) -> Vec<u8> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        bytes(sequence, NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)))
    }

    fn error(sequence: u32, code: i32) -> Vec<u8> {
        let mut error = ErrorMessage::default();
        error.code = code.try_into().ok();
        bytes(sequence, NetlinkPayload::Error(error))
    }

    fn bytes(sequence: u32, payload: NetlinkPayload<RouteNetlinkMessage>) -> Vec<u8> {
        let mut header = NetlinkHeader::default();
        header.sequence_number = sequence;
        let mut message = NetlinkMessage::new(header, payload);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    /// The devices that a part tells of in answer to request 7, and whether the answer ended.
    fn read(parts: &[Vec<u8>]) -> (Vec<u32>, io::Result<bool>) {
        let mut indices = Vec::new();
        let next = each_message(&parts.concat(), 7, &mut true, &mut |message| {
            if let RouteNetlinkMessage::NewLink(link) = message {
                indices.push(link.header.index);
            }
            Next::More
        });
        (indices, next.map(|next| matches!(next, Next::Done)))
    }

    #[test]
    fn answers_to_other_requests_are_passed_over() {
        let (indices, ended) =
            read(&[link(6, 1), error(6, -libc::EPERM), link(7, 2), link(0, 3), link(7, 4)]);
        assert_eq!((indices, ended.unwrap()), (vec![2, 4], false));
    }

    #[test]
    fn an_acknowledgement_ends_an_answer_and_an_error_is_one() {
        let (indices, ended) = read(&[link(7, 2), error(7, 0), link(7, 3)]);
        assert_eq!((indices, ended.unwrap()), (vec![2], true));
        let (indices, ended) = read(&[link(7, 2), error(7, -libc::EPERM)]);
        assert_eq!((indices, ended.unwrap_err().raw_os_error()), (vec![2], Some(libc::EPERM)));
    }

    #[test]
    fn a_table_that_changed_while_it_was_read_is_not_whole() {
        let mut changed = link(7, 2);
        changed[6..8].copy_from_slice(&NLM_F_DUMP_INTR.to_ne_bytes());
        for (part, expected) in [(link(7, 2), true), (changed, false)] {
            let (mut whole, mut messages) = (true, 0);
            let mut each = |_: RouteNetlinkMessage| {
                messages += 1;
                Next::More
            };
            assert!(each_message(&part, 7, &mut whole, &mut each).is_ok());
            assert_eq!((whole, messages), (expected, 1));
        }
    }

    #[test]
    fn an_answer_that_is_cut_off_is_an_error() {
        let mut cut = link(7, 2);
        for len in (1..cut.len()).rev() {
            cut.truncate(len);
            let (indices, ended) = read(std::slice::from_ref(&cut));
            assert_eq!(
                (indices, ended.unwrap_err().kind()),
                (vec![], io::ErrorKind::InvalidData),
                "{len} bytes"
            );
        }
        // Shorter than its own header.
        cut = error(7, 0);
        cut[..4].copy_from_slice(&4_u32.to_ne_bytes());
        assert_eq!(cut[4], NLMSG_ERROR as u8);
        assert_eq!(read(&[cut]).1.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_socket_that_is_not_answered_gives_up() {
        let mut socket = Socket::open(SockProtocol::NetlinkRoute, 0).unwrap();
        assert_eq!(socket.await_announcement().unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
