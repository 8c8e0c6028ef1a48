//! What may be opened: looked at before anything is paid for it (`PROTO §14.6`).

use core::net::SocketAddr;

use wraith_proto::Instant;
use wraith_proto::sealed::NOTE_OVERHEAD;

use super::answer::{Outgoing, What};
use super::{Dht, DropReason, Ping};
use crate::header::{Header, MAX_DATAGRAM, Transaction};
use crate::node::{Address, Node, NodeRef};
use crate::query::MAX_ANSWERS;
use crate::token::Token;

/// A datagram that is worth opening; for [`Dht::handle`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Admitted {
    pub(super) from: Address,
    pub(super) transaction: Transaction,
    pub(super) is_request: bool,
    /// Its sender has shown that it receives at its address.
    pub(super) is_proven: bool,
    header: u8,
}

impl Admitted {
    /// Bytes of the header. What is behind it is to be opened, bound to it.
    pub const fn header(&self) -> usize {
        self.header as usize
    }
}

impl Dht {
    /// Looks at a datagram before it is opened; [`None`] if there is nothing to open.
    ///
    /// # Errors
    /// Why it is to be dropped.
    pub fn admit(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Result<Option<Admitted>, DropReason> {
        self.admit_of(now, from, datagram, datagram.len())
    }

    /// Takes a datagram that nobody sealed: for simulations, which know its sender.
    ///
    /// # Errors
    /// Why it was dropped.
    pub fn handle_unsealed(
        &mut self,
        now: Instant,
        from: NodeRef,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        match self.admit_of(now, from.address, datagram, datagram.len() + NOTE_OVERHEAD)? {
            Some(admitted) => self.handle(now, admitted, &from.key, &datagram[admitted.header()..]),
            None => Ok(()),
        }
    }

    fn admit_of(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        len: usize,
    ) -> Result<Option<Admitted>, DropReason> {
        let from = Address::from(from);
        if !from.is_usable() {
            return Err(DropReason::BadSender);
        }
        let (header, read) = Header::parse(datagram).map_err(|_| DropReason::Malformed)?;
        let admitted = |transaction, is_request, is_proven| {
            Ok(Some(Admitted { from, transaction, is_request, is_proven, header: read as u8 }))
        };
        match header {
            Header::Request { transaction, token } => {
                match self.admits(now, &from, transaction, &token, len)? {
                    Some(is_proven) => admitted(transaction, true, is_proven),
                    None => Ok(None),
                }
            }
            Header::Answer { transaction } if self.admits_answer(transaction, &from) => {
                admitted(transaction, false, true)
            }
            Header::Token { transaction, token } if self.admits_answer(transaction, &from) => {
                self.ask_again(transaction, token).map(|()| None)
            }
            _ => Err(DropReason::Unasked),
        }
    }

    /// Whether the sender of a request that is to be answered has proven its address; [`None`] if it gets a token instead,
    /// since it has not and is one too many.
    fn admits(
        &mut self,
        now: Instant,
        from: &Address,
        transaction: Transaction,
        token: &Token,
        len: usize,
    ) -> Result<Option<bool>, DropReason> {
        if self.outbox.is_full() {
            return Err(DropReason::Busy);
        }
        if self.tokens.is_address(now, from, token) {
            return if self.rate.admits(from, now) { Ok(Some(true)) } else { Err(DropReason::TooMany) };
        }
        // Who has not shown that it owns its address gets no more bytes than it sent, whatever it gets.
        if len >= MAX_DATAGRAM && self.strangers.admits(from, now) {
            return Ok(Some(false));
        }
        let to = Node { key: [0; 32], address: *from };
        // There is room.
        let _ = self.outbox.push_back(Outgoing { to, transaction, what: What::Token });
        Ok(None)
    }

    fn admits_answer(&mut self, transaction: Transaction, from: &Address) -> bool {
        let is_its = |ping: &&mut Ping| {
            ping.node.address == *from && ping.sent.is_some_and(|(sent, _)| sent == transaction)
        };
        if let Some(ping) = self.pings.iter_mut().find(is_its) {
            let admitted = ping.answers < MAX_ANSWERS;
            ping.answers += u8::from(admitted);
            return admitted;
        }
        let mut running = self.queries.iter_mut().filter(|query| query.is_running());
        running.any(|query| query.admits(transaction, from))
    }

    fn ask_again(&mut self, transaction: Transaction, token: Token) -> Result<(), DropReason> {
        if token == Token::default() {
            return Err(DropReason::Malformed);
        }
        for ping in &mut self.pings {
            if ping.sent.is_some_and(|(sent, _)| sent == transaction) && ping.token.is_none() {
                (ping.token, ping.sent) = (Some(token), None);
                return Ok(());
            }
        }
        let mut running = self.queries.iter_mut().filter(|query| query.is_running());
        if running.any(|query| query.ask_again(transaction, token)) {
            Ok(())
        } else {
            Err(DropReason::Unasked)
        }
    }
}
