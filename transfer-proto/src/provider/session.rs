//! What a provider knows of one session.

use super::{ContentKey, Delivery, Failure, ProviderEvent, ProviderLimits, Shelf};
use crate::code::{Code, Violation};
use crate::control::{ControlReader, ControlWriter};
use crate::delivery::DeliveryHeader;
use crate::message::{ChunkBits, MAX_REQUESTS, MAX_WANTED, Message};
use crate::tree::{CHUNK, ListId, chunk_count, chunk_len};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Where events go.
type Events<'a> = dyn FnMut(ProviderEvent) + 'a;

#[derive(Debug)]
pub(super) struct Session {
    limits: ProviderLimits,
    reader: ControlReader,
    writer: ControlWriter,
    /// Answers that were not yet written. Small: a list is fetched when its turn comes.
    replies: VecDeque<Reply>,
    /// Numbers below it were used.
    next_transfer: u64,
    transfers: Vec<Transfer>,
    /// Ended transfers whose event was not taken yet.
    unreported: usize,
    /// Chunks wanted and not begun, in the order of the wants: transfer, chunk.
    wanted: VecDeque<(u32, u64)>,
    /// Deliveries that are not fully pulled.
    pulling: Vec<Delivery>,
}

#[derive(Debug)]
struct Transfer {
    number: u32,
    content: ContentKey,
    size: u64,
    delivered: u64,
}

#[derive(Clone, Copy, Debug)]
enum Reply {
    Offer(u32),
    List(u32, ListId),
    DoneAck(u32),
    Refused(u32, Code),
    Cancel(u32, Code),
}

impl Session {
    pub(super) fn new(limits: ProviderLimits) -> Self {
        Self {
            limits,
            reader: ControlReader::default(),
            writer: ControlWriter::default(),
            replies: VecDeque::new(),
            next_transfer: 0,
            transfers: Vec::new(),
            unreported: 0,
            wanted: VecDeque::new(),
            pulling: Vec::new(),
        }
    }

    pub(super) fn handle(
        &mut self,
        mut bytes: &[u8],
        shelf: &Shelf,
        events: &mut Events<'_>,
    ) -> Result<(), Violation> {
        let mut reader = core::mem::take(&mut self.reader);
        while let Some(frame) = reader.next(&mut bytes)? {
            if let Some(message) = Message::decode(frame)? {
                self.on_message(&message, shelf, events)?;
            }
        }
        self.reader = reader;
        Ok(())
    }

    pub(super) fn poll_control(&mut self, shelf: &Shelf, buffer: &mut [u8]) -> usize {
        let mut len = self.writer.poll(buffer);
        while len < buffer.len() {
            let Some(reply) = self.replies.pop_front() else {
                break;
            };
            self.write(reply, shelf);
            len += self.writer.poll(&mut buffer[len..]);
        }
        len
    }

    pub(super) fn next_delivery(&mut self) -> Option<Delivery> {
        if self.pulling.len() >= self.limits.parallel {
            return None;
        }
        let (number, chunk) = self.wanted.pop_front()?;
        let transfer = self.transfers.iter().find(|transfer| transfer.number == number)?;
        let delivery = Delivery {
            header: DeliveryHeader { transfer: number, len: chunk_len(chunk, transfer.size) as u32, chunk },
            content: transfer.content,
            offset: chunk * CHUNK as u64,
        };
        self.pulling.push(delivery);
        Some(delivery)
    }

    pub(super) fn on_pulled(&mut self, delivery: &Delivery) {
        self.pulling.retain(|pulling| pulling != delivery);
    }

    pub(super) fn on_delivered(&mut self, delivery: &Delivery) {
        self.on_pulled(delivery);
        if let Some(transfer) =
            self.transfers.iter_mut().find(|transfer| transfer.number == delivery.transfer())
        {
            transfer.delivered += u64::from(delivery.len());
        }
    }

    pub(super) fn on_reported(&mut self) {
        self.unreported = self.unreported.saturating_sub(1);
    }

    /// Ends the transfers of contents that `of` names, and tells the receiver.
    pub(super) fn end_all(&mut self, code: Code, of: impl Fn(ContentKey) -> bool, events: &mut Events<'_>) {
        while let Some(transfer) = self.transfers.iter().find(|transfer| of(transfer.content)) {
            self.end_one(transfer.number, code, events);
        }
    }

    /// Ends one transfer, and tells the receiver.
    pub(super) fn end_one(&mut self, number: u32, code: Code, events: &mut Events<'_>) {
        if self.fail(number, Failure::Ended(code), events) {
            self.replies.push_back(Reply::Cancel(number, code));
        }
    }

    pub(super) fn close(&mut self, events: &mut Events<'_>) {
        while let Some(number) = self.transfers.last().map(|transfer| transfer.number) {
            self.fail(number, Failure::SessionClosed, events);
        }
    }

    pub(super) fn delivered(&self, number: u32) -> Option<u64> {
        self.transfers.iter().find(|transfer| transfer.number == number).map(|transfer| transfer.delivered)
    }

    fn on_message(
        &mut self,
        message: &Message<'_>,
        shelf: &Shelf,
        events: &mut Events<'_>,
    ) -> Result<(), Violation> {
        match *message {
            Message::Get { transfer, kind, hash, token } => {
                if u64::from(transfer) < self.next_transfer {
                    return Err(Violation::TransferNumber);
                }
                self.next_transfer = u64::from(transfer) + 1;
                // Before the lookup, so that being busy says nothing about what is served.
                if self.transfers.len() + self.unreported >= self.limits.transfers {
                    return self.reply(Reply::Refused(transfer, Code::BUSY));
                }
                let Some(content) = shelf.find(kind, &hash, &token) else {
                    return self.reply(Reply::Refused(transfer, Code::NOT_FOUND));
                };
                let size = shelf.contents.get(&content.0).map_or(0, crate::Tree::size);
                self.transfers.push(Transfer { number: transfer, content, size, delivered: 0 });
                events(ProviderEvent::Started { transfer, content });
                self.reply(Reply::Offer(transfer))
            }
            Message::GetList { transfer, list } => match self.running(transfer)? {
                Some(running) if list.len(running.size) == 0 => Err(Violation::OutOfRange),
                Some(_) => self.reply(Reply::List(transfer, list)),
                None => Ok(()),
            },
            Message::Want { transfer, chunks } => self.on_want(transfer, &chunks),
            Message::Done { transfer, hash } => {
                let Some(content) = self.running(transfer)?.map(|running| running.content) else {
                    return Ok(());
                };
                if shelf.contents.get(&content.0).is_none_or(|tree| tree.hash() != hash) {
                    return Err(Violation::WrongContent);
                }
                self.forget(transfer);
                events(ProviderEvent::Confirmed { transfer, content });
                self.reply(Reply::DoneAck(transfer))
            }
            Message::Cancel { transfer, code } => {
                self.running(transfer)?;
                self.fail(transfer, Failure::Cancelled(code), events);
                Ok(())
            }
            Message::Offer { .. }
            | Message::List { .. }
            | Message::DoneAck { .. }
            | Message::Refused { .. } => Err(Violation::WrongSide),
        }
    }

    fn on_want(&mut self, transfer: u32, chunks: &ChunkBits) -> Result<(), Violation> {
        let Some(running) = self.running(transfer)? else {
            return Ok(());
        };
        if chunks.last() >= chunk_count(running.size) {
            return Err(Violation::OutOfRange);
        }
        if self.wanted.len() + self.pulling.len() + chunks.count() > MAX_WANTED {
            return Err(Violation::TooMany);
        }
        self.wanted.extend(chunks.iter().map(|chunk| (transfer, chunk)));
        Ok(())
    }

    /// The transfer if it runs; `None` if it has ended, whose late messages are no fault (`PROTO §10.5`).
    fn running(&self, number: u32) -> Result<Option<&Transfer>, Violation> {
        if u64::from(number) >= self.next_transfer {
            return Err(Violation::TransferNumber);
        }
        Ok(self.transfers.iter().find(|transfer| transfer.number == number))
    }

    fn reply(&mut self, reply: Reply) -> Result<(), Violation> {
        let unanswered = self.replies.iter().filter(|reply| !matches!(reply, Reply::Cancel(..))).count();
        if unanswered >= MAX_REQUESTS {
            return Err(Violation::TooMany);
        }
        self.replies.push_back(reply);
        Ok(())
    }

    fn fail(&mut self, number: u32, failure: Failure, events: &mut Events<'_>) -> bool {
        let Some(content) = self.forget(number) else {
            return false;
        };
        events(ProviderEvent::Failed { transfer: number, content, failure });
        true
    }

    fn forget(&mut self, number: u32) -> Option<ContentKey> {
        let place = self.transfers.iter().position(|transfer| transfer.number == number)?;
        self.wanted.retain(|(transfer, _)| *transfer != number);
        self.pulling.retain(|delivery| delivery.transfer() != number);
        self.unreported += 1;
        Some(self.transfers.swap_remove(place).content)
    }

    fn write(&mut self, reply: Reply, shelf: &Shelf) {
        // A transfer that ended after its answer was queued needs none: `Cancel` follows or came first.
        let tree = |number: u32| {
            let transfer = self.transfers.iter().find(|transfer| transfer.number == number)?;
            shelf.contents.get(&transfer.content.0)
        };
        let message = match reply {
            Reply::Offer(transfer) => tree(transfer).map(|tree| Message::Offer {
                transfer,
                size: tree.size(),
                complete: true,
                top: tree.top_list(),
            }),
            Reply::List(transfer, list) => tree(transfer)
                .and_then(|tree| tree.list(list))
                .map(|values| Message::List { transfer, list, values }),
            Reply::DoneAck(transfer) => Some(Message::DoneAck { transfer }),
            Reply::Refused(transfer, code) => Some(Message::Refused { transfer, code }),
            Reply::Cancel(transfer, code) => Some(Message::Cancel { transfer, code }),
        };
        if let Some(message) = message {
            self.writer.push(&message);
        }
    }
}
