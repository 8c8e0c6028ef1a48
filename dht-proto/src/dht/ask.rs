//! Requests of this node.

use core::time::Duration;

use wraith_proto::Instant;
use wraith_proto::wire::{Full, Writer};

use super::{Dht, Transmit};
use crate::header::{Header, MAX_UNSEALED, Transaction};
use crate::message::{Ask, Offer, write_ask};
use crate::node::Node;
use crate::query::{Goal, Step, TIMEOUT};
use crate::token::Token;

impl Dht {
    /// Says that the datagram with this header, of [`Dht::poll_transmit`], cannot be sealed: its recipient has no key.
    pub fn give_up(&mut self, header: &[u8]) {
        let Ok((Header::Request { transaction, .. }, _)) = Header::parse(header) else { return };
        for query in &mut self.queries {
            if let Some(node) = query.give_up(transaction) {
                self.table.failed(&node);
            }
        }
        self.pings.retain(|ping| ping.sent.is_none_or(|(sent, _)| sent != transaction));
    }

    pub(super) fn transmit_ping(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let at = self.pings.iter().position(|ping| ping.sent.is_none())?;
        let transaction = self.random.array();
        let deadline = now.saturating_add(Duration::from_millis(u64::from(TIMEOUT)));
        self.pings[at].sent = Some((transaction, deadline));
        let (node, token) = (self.pings[at].node, self.pings[at].token);
        let token = token.unwrap_or_else(|| self.table.token(&node, self.seconds(now)));
        write_request(buffer, &node, transaction, token, &Ask::Ping).ok()
    }

    pub(super) fn transmit_query(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let seconds = self.seconds(now);
        for slot in 0..self.queries.len() {
            if !self.queries[slot].is_running() {
                continue;
            }
            let transaction = self.random.array();
            let Some((entry, step)) = self.queries[slot].next(now, transaction) else { continue };
            let is_silent = self.queries.iter().any(|query| query.has_missed(&entry.node, now));
            let query = &mut self.queries[slot];
            if is_silent {
                query.suspect(&entry.node, true);
            }
            let ask = match (step, query.goal) {
                (Step::Store(write_token), _) => {
                    let record = crate::store::record(&query.record);
                    let offer = record.map_or(Offer::Provider(query.target), Offer::Record);
                    Ask::Store { write_token, expected: query.expected, offer }
                }
                (Step::Search, Goal::Get(kind)) => Ask::FindValue(query.target, kind),
                (Step::Search, _) => Ask::FindNode(query.target),
            };
            let fresh = Some(entry.token).filter(|token| *token != Token::default());
            let token = fresh.unwrap_or_else(|| self.table.token(&entry.node, seconds));
            return write_request(buffer, &entry.node, transaction, token, &ask).ok();
        }
        None
    }
}

/// Writes a request before it is sealed. Without a token it is filled up (`PROTO §14.5`).
fn write_request(
    buffer: &mut [u8],
    to: &Node,
    transaction: Transaction,
    token: Token,
    ask: &Ask<'_>,
) -> Result<Transmit, Full> {
    let mut w = Writer::new(buffer);
    Header::Request { transaction, token }.write(&mut w)?;
    let header = w.len();
    write_ask(&mut w, ask)?;
    if token == Token::default() {
        w.zeros(MAX_UNSEALED.saturating_sub(w.len()))?;
    }
    Ok(Transmit { to: to.address.into(), header, len: w.len(), key: Some(to.key) })
}
