//! What cases do with a node: ask, answer, and look for reactions.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use wraith_sim::Rng;

use super::subject::{Doors, Subject, Target};
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::dht::{Ask, Header, LONGEST, NOTE, Node, Reply, node_id, open, seal};
use crate::peer::{Identity, Note};
use crate::protocol::Door;

/// What does not come in so long after nothing else came does not come, where time is virtual.
const QUIET: Duration = Duration::from_millis(60);

/// After this long without answer a request is repeated.
const REPEAT: Duration = Duration::from_millis(250);

/// Somebody who speaks from a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Voice {
    pub(crate) door: Door,
    pub(crate) seed: [u8; 32],
}

impl Voice {
    pub(crate) fn peer(&self) -> [u8; 32] {
        Identity::from_seed(&self.seed).id
    }
}

/// A request of the subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    /// Whom it is for, at the door where it arrived.
    pub(crate) voice: Voice,
    pub(crate) transaction: [u8; 8],
    pub(crate) token: [u8; 16],
    pub(crate) ask: Ask,
    /// Bytes of the datagram.
    pub(crate) len: usize,
}

/// What came for a request of the bench.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    Answer { token: [u8; 16], reply: Reply },
    Token([u8; 16]),
}

/// An answer, or a token in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reaction {
    pub(crate) door: Door,
    pub(crate) transaction: [u8; 8],
    pub(crate) heard: Heard,
    /// Bytes of the datagram.
    pub(crate) len: usize,
}

/// A subject and both ends of the bench.
pub(crate) struct Bench {
    subject: Box<dyn Subject>,
    pub(crate) rng: Rng,
    pub(crate) front: Voice,
    pub(crate) back: Voice,
    /// How long what has to happen may take.
    patience: Duration,
    voices: Vec<Voice>,
    tokens: [[u8; 16]; 2],
    requests: VecDeque<Asked>,
}

impl Bench {
    pub(super) fn new(target: &dyn Target, doors: Doors, seed: u64, patience: Duration) -> Outcome<Self> {
        let mut rng = Rng::new(seed);
        let subject = target.subject(doors, rng.next_u64())?;
        let [front, back] = [Door::Front, Door::Back].map(|door| Voice { door, seed: rng.bytes32() });
        let (voices, tokens) = (vec![front, back], [[0; 16]; 2]);
        Ok(Self { subject, rng, front, back, patience, voices, tokens, requests: VecDeque::new() })
    }

    /// Somebody else at a door.
    pub(crate) fn voice(&mut self, door: Door) -> Voice {
        let voice = Voice { door, seed: self.rng.bytes32() };
        self.voices.push(voice);
        voice
    }

    /// Opens at a door what is for a voice of the other one.
    pub(crate) fn overhear(&mut self, voice: Voice, door: Door) {
        self.voices.push(Voice { door, ..voice });
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.subject.is_exact()
    }

    /// How the subject names a voice.
    pub(crate) fn node(&self, voice: Voice) -> Node {
        Node { address: self.subject.address(voice.door), peer: voice.peer() }
    }

    pub(crate) fn transaction(&mut self) -> [u8; 8] {
        self.rng.next_u64().to_be_bytes()
    }

    /// A request: with a token as short as may be, without one of 1,200 bytes.
    pub(crate) fn request(
        &mut self,
        voice: Voice,
        transaction: [u8; 8],
        token: [u8; 16],
        message: &[u8],
    ) -> Vec<u8> {
        let mut message = message.to_vec();
        if token == [0; 16] {
            message.resize(message.len().max(LONGEST - 25 - NOTE), 0);
        }
        self.sealed(voice, &Header::Request { transaction, token }, &message)
    }

    /// A datagram to the subject.
    pub(crate) fn sealed(&mut self, voice: Voice, header: &Header, message: &[u8]) -> Vec<u8> {
        self.sealed_to(self.subject.peer_id(), voice, header, message)
    }

    pub(crate) fn sealed_to(
        &mut self,
        to: [u8; 32],
        voice: Voice,
        header: &Header,
        message: &[u8],
    ) -> Vec<u8> {
        let note = Note { seed: voice.seed, to, randomness: self.rng.bytes32() };
        let sealed = seal(&note, header, message);
        sealed.unwrap_or_else(|error| panic!("the PeerId of the subject is none: {error}")).0
    }

    pub(crate) fn send(&mut self, from: Door, datagram: &[u8]) -> Outcome {
        self.subject.send(from, datagram).map_err(|error| network(&error))
    }

    /// Asks, with the token that there is, and again with the one that comes instead of an answer.
    pub(crate) fn ask(&mut self, voice: Voice, ask: &Ask) -> Outcome<Reply> {
        for _ in 0..2 {
            let (transaction, token) = (self.transaction(), self.tokens[at(voice.door)]);
            let request = self.request(voice, transaction, token, &ask.to_bytes());
            let reaction = self.exchange(voice.door, transaction, &request)?;
            ensure_eq!(reaction.door, voice.door, "§14.2: the address that is answered");
            match reaction.heard {
                Heard::Token(token) => self.tokens[at(voice.door)] = token,
                Heard::Answer { token, reply } => {
                    self.tokens[at(voice.door)] = token;
                    return Ok(reply);
                }
            }
        }
        Err(Verdict::Fail(format!("§14.5: no answer to {ask:?} with the token that was given for it")))
    }

    /// Sends a request until something comes for it.
    pub(crate) fn exchange(&mut self, from: Door, transaction: [u8; 8], request: &[u8]) -> Outcome<Reaction> {
        let end = self.subject.now() + self.patience;
        while self.subject.now() < end {
            self.send(from, request)?;
            let again = self.subject.now() + REPEAT;
            while let Some(left) = again.checked_sub(self.subject.now()).filter(|left| !left.is_zero()) {
                match self.receive(left)? {
                    Some(reaction) if reaction.transaction == transaction => return Ok(reaction),
                    _ => {}
                }
            }
        }
        Err(Verdict::Fail(format!("§14.2: a request of {} bytes is not answered", request.len())))
    }

    /// What comes for all that was sent so far.
    pub(crate) fn reactions(&mut self) -> Outcome<Vec<Reaction>> {
        let mut reactions = Vec::new();
        let patience = if self.is_exact() {
            QUIET
        } else {
            self.subject.settle().map_err(|error| network(&error))?;
            Duration::ZERO
        };
        while let Some((door, datagram)) = self.subject.receive(patience).map_err(|error| network(&error))? {
            reactions.extend(self.take(door, &datagram)?);
        }
        Ok(reactions)
    }

    /// Sends what must not be answered.
    pub(crate) fn silent(&mut self, from: Door, datagram: &[u8], what: &str) -> Outcome {
        self.send(from, datagram)?;
        let reactions = self.reactions()?;
        ensure!(reactions.is_empty(), "{what}: it is answered by {:?}", reactions[0].heard);
        Ok(())
    }

    /// The next request of the subject.
    pub(crate) fn asked(&mut self, patience: Duration) -> Outcome<Option<Asked>> {
        let end = self.subject.now() + patience;
        loop {
            if let Some(asked) = self.requests.pop_front() {
                return Ok(Some(asked));
            }
            let left = end.saturating_sub(self.subject.now());
            if left.is_zero() {
                return Ok(None);
            }
            self.receive(left)?;
        }
    }

    /// A request of the subject that came while something else was waited for.
    pub(crate) fn heard(&mut self) -> Option<Asked> {
        self.requests.pop_front()
    }

    /// Asks, so that the subject asks back whether `voice` is there; that ping is not answered yet.
    pub(crate) fn pinged(&mut self, voice: Voice) -> Outcome<Asked> {
        self.requests.clear();
        let end = self.subject.now() + self.patience;
        while self.subject.now() < end {
            // It may be busy with pings of others.
            self.ask(voice, &Ask::Ping)?;
            while let Some(asked) = self.asked(REPEAT)? {
                if asked.voice == voice && asked.ask == Ask::Ping {
                    return Ok(asked);
                }
            }
        }
        Err(Verdict::NotClaimed("it does not ping who asks: its table may be full".to_owned()))
    }

    /// Makes `voice` one of the subject's contacts.
    pub(crate) fn introduce(&mut self, voice: Voice) -> Outcome {
        let ping = self.pinged(voice)?;
        self.answer(&ping, &Reply::Pong)
    }

    pub(crate) fn answer(&mut self, asked: &Asked, reply: &Reply) -> Outcome {
        let answer = self.answer_to(asked, &reply.to_bytes(&[7; 16]));
        self.send(asked.voice.door, &answer)
    }

    /// An answer by whom the request is for.
    pub(crate) fn answer_to(&mut self, asked: &Asked, message: &[u8]) -> Vec<u8> {
        self.sealed(asked.voice, &Header::Answer { transaction: asked.transaction }, message)
    }

    /// Whether the subject names `who` to `by`.
    pub(crate) fn names(&mut self, by: Voice, who: Voice) -> Outcome<bool> {
        let node = self.node(who);
        match self.ask(by, &Ask::FindNode(node_id(&node.peer)))? {
            Reply::Found { nodes, .. } => Ok(nodes.contains(&node)),
            other => Err(Verdict::Fail(format!("§14.4: find-node is answered by {other:?}"))),
        }
    }

    fn receive(&mut self, patience: Duration) -> Outcome<Option<Reaction>> {
        match self.subject.receive(patience).map_err(|error| network(&error))? {
            Some((door, datagram)) => self.take(door, &datagram),
            None => Ok(None),
        }
    }

    /// Reads what the subject has sent, all of which has to be well-formed. Its requests wait for [`asked`](Self::asked).
    fn take(&mut self, door: Door, datagram: &[u8]) -> Outcome<Option<Reaction>> {
        let wrong = |error| Verdict::Fail(format!("it sends what is malformed: {error}"));
        let len = datagram.len();
        let (header, _) = Header::read(datagram).map_err(wrong)?;
        let reaction = |transaction, heard| Some(Reaction { door, transaction, heard, len });
        if let Header::Token { transaction, token } = header {
            return Ok(reaction(transaction, Heard::Token(token)));
        }
        let mut there = self.voices.iter().filter(|voice| voice.door == door);
        let opened = there.find_map(|voice| Some((*voice, open(&voice.seed, datagram).ok()?)));
        let Some((voice, (_, from, message))) = opened else {
            return Err(Verdict::Fail("§14.2: it sends what does not open".to_owned()));
        };
        ensure_eq!(from, self.subject.peer_id(), "§14.2: the sender of what it sends");
        match header {
            Header::Request { transaction, token } => {
                let ask = Ask::read(&message).map_err(wrong)?;
                let long_enough = token != [0; 16] || len == LONGEST;
                ensure!(long_enough, "§14.5: it asks without a token in {len} bytes");
                self.requests.push_back(Asked { voice, transaction, token, ask, len });
                Ok(None)
            }
            Header::Answer { transaction } => {
                let (token, reply) = Reply::read(&message).map_err(wrong)?;
                Ok(reaction(transaction, Heard::Answer { token, reply }))
            }
            Header::Token { .. } => Ok(None),
        }
    }
}

fn at(door: Door) -> usize {
    usize::from(door == Door::Back)
}

fn network(error: &io::Error) -> Verdict {
    Verdict::Fail(format!("the network fails: {error}"))
}
