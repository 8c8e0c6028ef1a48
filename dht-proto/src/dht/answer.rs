//! Requests: who may ask, what is kept, what is answered.

use wraith_proto::Instant;
use wraith_proto::wire::{Full, Writer};

use super::{Admitted, Dht, DropReason, Transmit};
use crate::header::{Header, MAX_UNSEALED, Transaction};
use crate::id::Id;
use crate::message::{
    Ask, MAX_RECORD, Offer, StoreResult, write_found, write_nodes, write_pong, write_stored,
};
use crate::node::Node;
use crate::record::{Keyed, Kind};
use crate::table::K;

/// An answer that is written when it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) to: Node,
    pub(super) transaction: Transaction,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Instead of an answer, to whoever is there.
    Token,
    Pong,
    Found(Id, Option<Kind>),
    Stored(StoreResult, u64),
}

impl Dht {
    pub(super) fn answer(
        &mut self,
        now: Instant,
        from: Node,
        admitted: &Admitted,
        ask: &Ask<'_>,
    ) -> Result<(), DropReason> {
        if self.outbox.is_full() {
            return Err(DropReason::Busy);
        }
        let what = match *ask {
            Ask::Ping => What::Pong,
            Ask::FindNode(target) => What::Found(target, None),
            Ask::FindValue(target, kind) => What::Found(target, Some(kind)),
            Ask::Store { .. } => {
                let (result, seq) = self.store_for(now, &from, ask);
                What::Stored(result, seq)
            }
        };
        // There is room.
        let _ = self.outbox.push_back(Outgoing { to: from, transaction: admitted.transaction, what });
        // What goes to an address that may be forged comes to no more bytes than it sent, and the answer may be as long.
        if admitted.is_proven && self.table.wants(&from) {
            self.ping(from, None);
        }
        Ok(())
    }

    /// Writes an answer before it is sealed; [`None`] if nothing of use fits.
    pub(super) fn write_outgoing(
        &self,
        now: Instant,
        outgoing: &Outgoing,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let Outgoing { to, transaction, what } = outgoing;
        let transaction = *transaction;
        let token = self.tokens.address(now, &to.address);
        let mut w = Writer::new(&mut buffer[..MAX_UNSEALED]);
        let is_bare = matches!(what, What::Token);
        let header =
            if is_bare { Header::Token { transaction, token } } else { Header::Answer { transaction } };
        header.write(&mut w).ok()?;
        let header = w.len();
        match what {
            What::Token => Ok(()),
            What::Pong => write_pong(&mut w, &token),
            What::Stored(result, seq) => write_stored(&mut w, &token, *result, *seq),
            What::Found(target, kind) => {
                let write_token = self.tokens.write(now, to, target);
                write_found(&mut w, &token, write_token)
                    .and_then(|()| self.write_record(&mut w, target, *kind, to, now))
                    .and_then(|()| self.write_nodes(&mut w, target, to))
            }
        }
        .ok()?;
        let key = (!is_bare).then_some(to.key);
        Some(Transmit { to: to.address.into(), header, len: w.len(), key })
    }

    fn store_for(&mut self, now: Instant, from: &Node, ask: &Ask<'_>) -> (StoreResult, u64) {
        let Ask::Store { write_token, expected, offer } = ask else {
            return (StoreResult::NotGenuine, 0);
        };
        let (key, keyed) = match offer {
            Offer::Record(record) => {
                let keyed = Keyed::new(*record);
                (*keyed.key(), Some(keyed))
            }
            Offer::Provider(key) => (*key, None),
        };
        if !self.tokens.is_write(now, from, &key, *write_token) {
            return (StoreResult::BadToken, 0);
        }
        let seconds = self.seconds(now);
        match keyed {
            Some(keyed) => self.store.put(&keyed, *expected, Some(&from.address), seconds),
            None => (self.store.announce(&key, from, seconds), 0),
        }
    }

    fn write_record(
        &self,
        w: &mut Writer<'_>,
        key: &Id,
        kind: Option<Kind>,
        to: &Node,
        now: Instant,
    ) -> Result<(), Full> {
        let seconds = self.seconds(now);
        let providers = || self.store.providers(key, seconds).filter(|node| may_name(node, to));
        match kind {
            Some(Kind::Providers) if providers().next().is_some() => {
                w.u8(Kind::Providers as u8)?;
                write_nodes(w, providers())
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
        write_nodes(w, nodes.filter(|node| node.key != to.key && may_name(node, to)).take(K))
    }
}

/// Whether `node` means something where `to` is: private addresses are not spread (`PROTO §14.10`).
const fn may_name(node: &Node, to: &Node) -> bool {
    node.address.is_public() || !to.address.is_public()
}
