//! Serving contents: answers on control streams, and which chunk goes out next.
//!
//! The caller owns streams and files. For each session it feeds the bytes of the control stream that the
//! receiver opened to [`Provider::handle`], writes what [`Provider::poll_control`] gives to the same stream,
//! and opens one unidirectional stream for each [`Provider::next_delivery`].

mod delivery;
mod session;

use crate::code::{Code, Violation};
use crate::message::{Kind, Token};
use crate::tree::Tree;
use alloc::collections::{BTreeMap, VecDeque};
use core::fmt;
use session::Session;

pub use delivery::Delivery;

/// How much a provider does at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProviderLimits {
    /// Sessions at a time.
    pub sessions: usize,
    /// Transfers at a time in each session; ended ones count until their event was taken.
    pub transfers: usize,
    /// Deliveries of a session that are not yet fully pulled; few, so that chunks complete in order.
    pub parallel: usize,
}

impl Default for ProviderLimits {
    fn default() -> Self {
        Self { sessions: 1024, transfers: 64, parallel: 2 }
    }
}

/// Names a content that a provider serves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContentKey(u32);

/// Who may fetch a content.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Whoever has the token of the ticket.
    Token(Token),
    /// Everybody who knows the content id.
    Announced,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token(secret)",
            Self::Announced => "Announced",
        })
    }
}

/// What happened to the transfers of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProviderEvent {
    /// A receiver asked for a content and may have it.
    Started {
        /// The receiver's number of the transfer.
        transfer: u32,
        /// Which content.
        content: ContentKey,
    },
    /// The receiver has verified and stored everything.
    Confirmed {
        /// The receiver's number of the transfer.
        transfer: u32,
        /// Which content.
        content: ContentKey,
    },
    /// The transfer ended without a confirmation; its deliveries are to be reset.
    Failed {
        /// The receiver's number of the transfer.
        transfer: u32,
        /// Which content.
        content: ContentKey,
        /// Why.
        failure: Failure,
    },
}

/// Why a transfer ended without a confirmation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The receiver cancelled it.
    Cancelled(Code),
    /// This side ended it.
    Ended(Code),
    /// The session ended first.
    SessionClosed,
}

/// Why a content was not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddError {
    /// The same content is served under the same token.
    AlreadyServed,
    /// No number is left.
    Exhausted,
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyServed => "the content is served already",
            Self::Exhausted => "no more contents can be added",
        })
    }
}

impl core::error::Error for AddError {}

/// Why a session was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// `ProviderLimits::sessions` is reached.
    Full,
    /// It was opened before.
    AlreadyOpen,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many sessions",
            Self::AlreadyOpen => "the session is open already",
        })
    }
}

impl core::error::Error for OpenError {}

/// Serves contents to the sessions `S`.
#[derive(Debug)]
pub struct Provider<S> {
    limits: ProviderLimits,
    shelf: Shelf,
    sessions: BTreeMap<S, Session>,
    events: VecDeque<(S, ProviderEvent)>,
}

impl<S: Copy + Ord> Provider<S> {
    /// A provider without contents. `secret` is fresh random bytes, or fixed ones in tests.
    pub fn new(limits: ProviderLimits, secret: [u8; 32]) -> Self {
        Self { limits, shelf: Shelf::new(secret), sessions: BTreeMap::new(), events: VecDeque::new() }
    }

    /// Serves a content from now on.
    ///
    /// # Errors
    ///
    /// If it is served in the same way already, or no number is left for it.
    pub fn add(&mut self, tree: Tree, kind: Kind, access: Access) -> Result<ContentKey, AddError> {
        self.shelf.add(tree, kind, access)
    }

    /// Serves a content no more and cancels its transfers with `code`, [`Code::CHANGED`] if its bytes changed.
    pub fn remove(&mut self, content: ContentKey, code: Code) {
        self.shelf.remove(content);
        for (&session, state) in &mut self.sessions {
            state.end_all(code, |of| of == content, &mut events_of(session, &mut self.events));
        }
    }

    /// Takes a session whose peer may open a control stream.
    ///
    /// # Errors
    ///
    /// At the limit of sessions, or if it is open already.
    pub fn open(&mut self, session: S) -> Result<(), OpenError> {
        if self.sessions.contains_key(&session) {
            return Err(OpenError::AlreadyOpen);
        }
        if self.sessions.len() >= self.limits.sessions {
            return Err(OpenError::Full);
        }
        self.sessions.insert(session, Session::new(self.limits));
        Ok(())
    }

    /// Forgets a session that has ended; what was not confirmed has failed.
    pub fn close(&mut self, session: S) {
        if let Some(mut state) = self.sessions.remove(&session) {
            state.close(&mut events_of(session, &mut self.events));
        }
    }

    /// Takes the next bytes of the session's control stream, in order and in pieces of any length.
    ///
    /// # Errors
    ///
    /// The rule that the peer broke; the caller closes the session with [`Violation::code`]. All transfers of
    /// the session have failed then.
    pub fn handle(&mut self, session: S, bytes: &[u8]) -> Result<(), Violation> {
        let Some(state) = self.sessions.get_mut(&session) else {
            return Ok(());
        };
        let result = state.handle(bytes, &self.shelf, &mut events_of(session, &mut self.events));
        if result.is_err() {
            self.close(session);
        }
        result
    }

    /// Moves bytes for the session's control stream into `buffer`; how many. Zero means none are waiting.
    pub fn poll_control(&mut self, session: S, buffer: &mut [u8]) -> usize {
        self.sessions.get_mut(&session).map_or(0, |state| state.poll_control(&self.shelf, buffer))
    }

    /// The chunk to send next, if another stream may be opened now: chunks go out in the order of the wants,
    /// at most [`ProviderLimits::parallel`] that are not yet fully pulled.
    pub fn next_delivery(&mut self, session: S) -> Option<Delivery> {
        self.sessions.get_mut(&session)?.next_delivery()
    }

    /// The last byte of `delivery` was put in a packet, or the receiver stopped its stream: another may begin.
    pub fn on_pulled(&mut self, session: S, delivery: &Delivery) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.on_pulled(delivery);
        }
    }

    /// The stream of `delivery` was acknowledged whole.
    pub fn on_delivered(&mut self, session: S, delivery: &Delivery) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.on_delivered(delivery);
        }
    }

    /// `delivery` cannot be sent, for the reason `code`: its transfer ends, and its stream is to be reset.
    ///
    /// [`Code::CHANGED`] tells that the content is not any more what it was when it was hashed.
    pub fn on_failed(&mut self, session: S, delivery: &Delivery, code: Code) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.end_one(delivery.transfer(), code, &mut events_of(session, &mut self.events));
        }
    }

    /// What happened, oldest first.
    ///
    /// Never more than two events for each transfer that [`ProviderLimits::transfers`] lets in.
    pub fn poll_event(&mut self) -> Option<(S, ProviderEvent)> {
        let (session, event) = self.events.pop_front()?;
        if !matches!(event, ProviderEvent::Started { .. })
            && let Some(state) = self.sessions.get_mut(&session)
        {
            state.on_reported();
        }
        Some((session, event))
    }

    /// Bytes of a transfer's chunks that were acknowledged; `None` if it is not running.
    pub fn delivered(&self, session: S, transfer: u32) -> Option<u64> {
        self.sessions.get(&session)?.delivered(transfer)
    }

    /// The tree of a content that is served.
    pub fn tree(&self, content: ContentKey) -> Option<&Tree> {
        self.shelf.contents.get(&content.0)
    }
}

fn events_of<S: Copy>(session: S, events: &mut VecDeque<(S, ProviderEvent)>) -> impl FnMut(ProviderEvent) {
    move |event| events.push_back((session, event))
}

/// The contents, and the way from what a `Get` says to one of them.
#[derive(Debug)]
struct Shelf {
    secret: Secret,
    /// Keyed hash of kind, content id and token.
    index: BTreeMap<[u8; 32], u32>,
    keys: BTreeMap<u32, [u8; 32]>,
    contents: BTreeMap<u32, Tree>,
    next: u32,
}

struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The token in the index under which announced contents stand.
const NO_TOKEN: Token = [0; 16];

impl Shelf {
    fn new(secret: [u8; 32]) -> Self {
        Self {
            secret: Secret(secret),
            index: BTreeMap::new(),
            keys: BTreeMap::new(),
            contents: BTreeMap::new(),
            next: 0,
        }
    }

    fn add(&mut self, tree: Tree, kind: Kind, access: Access) -> Result<ContentKey, AddError> {
        let key = match access {
            Access::Token(token) => self.key(kind, &tree.hash(), Some(&token)),
            Access::Announced => self.key(kind, &tree.hash(), None),
        };
        if self.index.contains_key(&key) {
            return Err(AddError::AlreadyServed);
        }
        let number = self.next;
        self.next = number.checked_add(1).ok_or(AddError::Exhausted)?;
        self.index.insert(key, number);
        self.keys.insert(number, key);
        self.contents.insert(number, tree);
        Ok(ContentKey(number))
    }

    fn remove(&mut self, content: ContentKey) {
        self.contents.remove(&content.0);
        if let Some(key) = self.keys.remove(&content.0) {
            self.index.remove(&key);
        }
    }

    /// The content that a `Get` may have. An unknown content id and a wrong token take the same way: both
    /// are a key that is not there, and where a key stands among the others is known to nobody without the
    /// secret, so the time of a lookup tells nothing (`PROTO §10.7`).
    fn find(&self, kind: Kind, hash: &[u8; 32], token: &Token) -> Option<ContentKey> {
        let with_token = self.index.get(&self.key(kind, hash, Some(token)));
        let announced = self.index.get(&self.key(kind, hash, None));
        with_token.or(announced).copied().map(ContentKey)
    }

    fn key(&self, kind: Kind, hash: &[u8; 32], token: Option<&Token>) -> [u8; 32] {
        let mut input = [0; 2 + 32 + 16];
        input[0] = kind.to_byte();
        input[1] = u8::from(token.is_some());
        input[2..34].copy_from_slice(hash);
        input[34..].copy_from_slice(token.unwrap_or(&NO_TOKEN));
        *blake3::keyed_hash(&self.secret.0, &input).as_bytes()
    }
}
