//! Requests: who may ask, what is kept, what is answered.

use wraith_proto::Instant;
use wraith_proto::wire::{Full, Writer};

use super::{Dht, DropReason};
use crate::id::Id;
use crate::message::{
    Ask, MAX_MESSAGE, MAX_RECORD, SHORTEST_ANSWER, StoreResult, Transaction, write_found, write_nodes,
    write_pong, write_stored,
};
use crate::node::Node;
use crate::record::Kind;
use crate::table::K;
use crate::token::Token;

/// An answer that is written when it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    to: Node,
    transaction: Transaction,
    /// Its length at most.
    limit: u16,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Pong,
    Found(Id, Option<Kind>),
    Stored(StoreResult, u64),
}

impl Outgoing {
    pub(super) const fn to(&self) -> Node {
        self.to
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit as usize
    }
}

impl Dht {
    pub(super) fn answer(
        &mut self,
        now: Instant,
        from: Node,
        transaction: Transaction,
        token: &Token,
        ask: &Ask<'_>,
        len: usize,
    ) -> Result<(), DropReason> {
        if !self.rate.admits(&from.address, now) {
            return Err(DropReason::TooMany);
        }
        if self.outbox.is_full() {
            return Err(DropReason::Busy);
        }
        // Who has not shown that it owns its address gets no more bytes than it sent.
        let limit = if self.tokens.is_address(now, &from, token) { MAX_MESSAGE } else { len };
        let what = match *ask {
            Ask::Ping => What::Pong,
            Ask::FindNode(target) => What::Found(target, None),
            Ask::FindValue(target, kind) => What::Found(target, Some(kind)),
            Ask::Store { .. } => {
                let (result, seq) = self.store_for(now, &from, ask);
                What::Stored(result, seq)
            }
        };
        if limit >= SHORTEST_ANSWER {
            // There is room.
            let _ = self.outbox.push_back(Outgoing { to: from, transaction, limit: limit as u16, what });
        }
        if self.table.wants(&from) {
            self.ping(from);
        }
        Ok(())
    }

    /// Writes an answer; [`None`] if nothing of use fits.
    pub(super) fn write_answer(&self, now: Instant, outgoing: &Outgoing, buffer: &mut [u8]) -> Option<usize> {
        let (to, transaction) = (&outgoing.to, outgoing.transaction);
        let token = self.tokens.address(now, to);
        let mut w = Writer::new(buffer);
        match outgoing.what {
            What::Pong => write_pong(&mut w, transaction, &token),
            What::Stored(result, seq) => write_stored(&mut w, transaction, &token, result, seq),
            What::Found(target, kind) => {
                let write_token = self.tokens.write(now, to, &target);
                write_found(&mut w, transaction, &token, &write_token)
                    .and_then(|()| self.write_record(&mut w, &target, kind, now))
                    .and_then(|()| self.write_nodes(&mut w, &target, to))
            }
        }
        .ok()?;
        Some(w.len())
    }

    fn store_for(&mut self, now: Instant, from: &Node, ask: &Ask<'_>) -> (StoreResult, u64) {
        let Ask::Store { key, write_token, expected, record } = ask else {
            return (StoreResult::NotGenuine, 0);
        };
        if !self.tokens.is_write(now, from, key, write_token) {
            return (StoreResult::BadToken, 0);
        }
        let seconds = self.seconds(now);
        match record {
            Some(record) => self.store.put(key, record, *expected, Some(&from.address), seconds),
            None => (self.store.announce(key, from, seconds), 0),
        }
    }

    fn write_record(
        &self,
        w: &mut Writer<'_>,
        key: &Id,
        kind: Option<Kind>,
        now: Instant,
    ) -> Result<(), Full> {
        let seconds = self.seconds(now);
        match kind {
            Some(Kind::Providers) if self.store.providers(key, seconds).next().is_some() => {
                w.u8(Kind::Providers as u8)?;
                write_nodes(w, self.store.providers(key, seconds))
            }
            // One byte is for the number of nodes behind it.
            Some(kind @ (Kind::Value | Kind::Signed)) if w.remaining() > MAX_RECORD => {
                if self.store.write(key, kind, seconds, w)? { Ok(()) } else { w.u8(0) }
            }
            _ => w.u8(0),
        }
    }

    /// The nodes nearest to `target`, of the family over which was asked, without the one that asks.
    fn write_nodes(&self, w: &mut Writer<'_>, target: &Id, to: &Node) -> Result<(), Full> {
        let nearest = self.table.nearest(target.place(), Some(to.address.family()));
        let nodes = nearest.iter().map(|&(_, at)| self.table.contact(at).node);
        write_nodes(
            w,
            nodes
                .filter(|node| node.key != to.key && (node.address.is_public() || !to.address.is_public()))
                .take(K),
        )
    }
}
