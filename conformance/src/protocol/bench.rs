//! What cases do with a subject: shake hands, talk, and look for reactions.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use wraith_proto::wire::{
    ConnectionId, CookiePacket, Frame, HandshakeKind, is_handshake, visible_destination,
};
use wraith_sim::Rng;

use super::run::Case;
use super::subject::{Door, Side, Subject, Target, Variant, Wish};
use super::talk::{Talk, describe};
use crate::case::{Outcome, Verdict, ensure};
use crate::peer::{Answer, Dial, Identity, KeyPair, Met, Opened, Profile, Reception, Refused, Response};

/// After this long without answer a message is repeated (`PROTO §4.10`).
pub(super) const REPEAT: Duration = Duration::from_millis(250);

/// Time between handshakes that the subject has to look at, each.
const PAUSE: Duration = Duration::from_millis(10);

/// No case needs as many datagrams of the subject: one that sends more sends without end.
const MOST: u32 = 200_000;

/// A subject and this end of the wire.
pub(crate) struct Bench<'a> {
    target: &'a dyn Target,
    side: Side,
    variant: Variant,
    subject: Box<dyn Subject>,
    pub(crate) rng: Rng,
    /// What this end says of itself by default.
    pub(crate) profile: Profile,
    /// How long what has to happen may take.
    pub(crate) patience: Duration,
    /// Handshake datagrams that were seen: their repetitions are no news.
    seen: Vec<Vec<u8>>,
    inbox: VecDeque<(Door, Vec<u8>)>,
    received: u32,
}

impl<'a> Bench<'a> {
    pub(super) fn new(target: &'a dyn Target, case: &Case, seed: u64, patience: Duration) -> Outcome<Self> {
        let mut rng = Rng::new(seed);
        let &Case { side, variant, .. } = case;
        let subject = target.subject(side, variant, rng.next_u64())?;
        let profile = Profile::new(Identity::from_seed(&rng.bytes32()), &target.protocol());
        Ok(Self {
            target,
            side,
            variant,
            subject,
            rng,
            profile,
            patience,
            seen: Vec::new(),
            inbox: VecDeque::new(),
            received: 0,
        })
    }

    /// Begins anew with another subject.
    pub(crate) fn renew(&mut self) -> Outcome {
        self.subject = self.target.subject(self.side, self.variant, self.rng.next_u64())?;
        self.inbox.clear();
        self.seen.clear();
        Ok(())
    }

    /// An identity that nobody else has.
    pub(crate) fn identity(&mut self) -> Identity {
        Identity::from_seed(&self.rng.bytes32())
    }

    pub(crate) fn keys(&mut self) -> KeyPair {
        KeyPair::new(self.rng.bytes32())
    }

    pub(crate) fn id(&mut self) -> ConnectionId {
        ConnectionId(self.rng.next_u64().to_be_bytes())
    }

    pub(crate) fn now(&self) -> Duration {
        self.subject.now()
    }

    /// Time since an earlier moment.
    pub(crate) fn since(&self, begin: Duration) -> Duration {
        self.now().saturating_sub(begin)
    }

    /// Who the subject is, if that is known.
    pub(crate) fn peer_id(&self) -> Option<[u8; 32]> {
        self.subject.peer_id()
    }

    pub(crate) fn wish(&mut self, wish: Wish) -> Outcome {
        self.subject.wish(wish)
    }

    pub(crate) fn send(&mut self, datagram: &[u8]) -> Outcome {
        self.send_from(Door::Front, datagram)
    }

    pub(crate) fn send_from(&mut self, door: Door, datagram: &[u8]) -> Outcome {
        self.subject.send(door, datagram).map_err(|error| network(&error))
    }

    /// The next datagram that is no repetition of a handshake message.
    pub(crate) fn next(&mut self, patience: Duration) -> Outcome<Option<(Door, Vec<u8>)>> {
        let end = self.now() + patience;
        loop {
            let Some((door, datagram)) = self.next_raw(end.saturating_sub(self.now()))? else {
                return Ok(None);
            };
            if !is_handshake(&datagram) {
                return Ok(Some((door, datagram)));
            }
            if !self.seen.contains(&datagram) {
                self.seen.push(datagram.clone());
                return Ok(Some((door, datagram)));
            }
        }
    }

    /// The next datagram.
    pub(crate) fn next_raw(&mut self, patience: Duration) -> Outcome<Option<(Door, Vec<u8>)>> {
        if let Some(next) = self.inbox.pop_front() {
            return Ok(Some(next));
        }
        self.receive(patience)
    }

    fn receive(&mut self, patience: Duration) -> Outcome<Option<(Door, Vec<u8>)>> {
        let arrival = self.subject.receive(patience).map_err(|error| network(&error))?;
        self.received += u32::from(arrival.is_some());
        ensure!(self.received <= MOST, "it sends without end: {MOST} datagrams came");
        Ok(arrival)
    }

    /// Waits for a datagram of a type at either door; others are passed over.
    pub(crate) fn next_of(
        &mut self,
        kind: HandshakeKind,
        patience: Duration,
    ) -> Outcome<Option<(Door, Vec<u8>)>> {
        let end = self.now() + patience;
        while let Some((door, datagram)) = self.next_raw(end.saturating_sub(self.now()))? {
            if HandshakeKind::of(&datagram) == Some(kind) {
                return Ok(Some((door, datagram)));
            }
        }
        Ok(None)
    }

    /// Lets the subject deal with everything so far.
    pub(crate) fn settle(&mut self) -> Outcome {
        self.subject.settle().map_err(|error| network(&error))
    }

    /// What comes without waiting, once everything so far was dealt with; repetitions left out.
    pub(crate) fn answers(&mut self) -> Outcome<Vec<(Door, Vec<u8>)>> {
        self.settle()?;
        let mut answers = Vec::new();
        // The application of a process that dials says something when it likes.
        let talks = self.side == Side::Dials && !self.is_exact();
        while let Some(answer) = self.next(Duration::ZERO)? {
            if !talks || is_handshake(&answer.1) {
                answers.push(answer);
            }
        }
        Ok(answers)
    }

    /// Forgets what a subject that runs by itself may have said before it saw what was sent last.
    pub(crate) fn overtake(&mut self) -> Outcome {
        if self.is_exact() {
            return Ok(());
        }
        self.settle()?;
        self.forget()
    }

    /// Forgets what came so far.
    pub(crate) fn forget(&mut self) -> Outcome {
        while self.next_raw(Duration::ZERO)?.is_some() {}
        self.seen.clear();
        Ok(())
    }

    /// Sends datagrams that have to be dropped: nobody answers, and if the subject counts, each counts (`PROTO §1.3`).
    pub(crate) fn dropped(&mut self, datagrams: &[Vec<u8>], what: &str) -> Outcome {
        // So few at a time that a socket holds them.
        for batch in datagrams.chunks(16) {
            let before = self.subject.dropped();
            for datagram in batch {
                self.send(datagram)?;
            }
            let answers = self.answers()?;
            ensure!(answers.is_empty(), "{what}: {} instead of silence", describe(&answers[0].1));
            let counted = self.subject.dropped().zip(before).map(|(after, before)| after - before);
            ensure!(
                counted.is_none_or(|counted| counted == batch.len() as u64),
                "{what}: {counted:?} of {} datagrams were counted as dropped",
                batch.len()
            );
        }
        Ok(())
    }

    /// Lets a little time go by, so that limits on the rate of handshakes are not what makes the subject silent
    /// (`PROTO §4.15`).
    pub(crate) fn pause(&mut self) -> Outcome {
        let end = self.now() + PAUSE;
        while let Some(arrival) = self.receive(end.saturating_sub(self.now()))? {
            self.inbox.push_back(arrival);
        }
        Ok(())
    }

    /// Sends an INIT that has to be dropped, with a cookie if one is asked for.
    pub(crate) fn refused_init(&mut self, dial: &Dial, what: &str) -> Outcome {
        let mut init = dial.init().to_vec();
        for _ in 0..3 {
            self.pause()?;
            let before = self.subject.dropped();
            self.send(&init)?;
            let answers = self.answers()?;
            let cookie =
                answers.iter().find_map(|(_, answer)| Some(*CookiePacket::parse(answer).ok()?.cookie()));
            if let Some(cookie) = cookie {
                init = dial.init_with(&cookie);
                continue;
            }
            ensure!(answers.is_empty(), "{what}: {} instead of silence", describe(&answers[0].1));
            let counted = self.subject.dropped().zip(before).map(|(after, before)| after - before);
            ensure!(counted.is_none_or(|counted| counted == 1), "{what}: it is not counted as dropped");
            return Ok(());
        }
        Err(Verdict::Fail("§4.14: a cookie is answered with another".to_owned()))
    }

    /// Whether the subject's time is virtual, so that nothing takes longer than it should.
    pub(crate) fn is_exact(&self) -> bool {
        self.subject.is_exact()
    }

    /// Which side of the handshake the subject is.
    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// How much shorter than it is a pause may look: its beginning is seen when this end gets to look.
    pub(crate) fn early(&self) -> Duration {
        Duration::from_millis(if self.is_exact() { 0 } else { 200 })
    }

    /// The places of a message to try: all where time stands still, so many that the subject waits for them elsewhere.
    pub(crate) fn places(&self, len: usize) -> impl Iterator<Item = usize> + use<> {
        let step = if self.is_exact() { 1 } else { 17 };
        (0..len).filter(move |at| *at < 64 || *at + 64 > len || *at % step == 0)
    }

    /// A dial as it should be.
    pub(crate) fn dial(&mut self) -> Outcome<Dial> {
        let (profile, id, keys) = (self.profile.clone(), self.id(), self.keys());
        Ok(Dial::new(&profile, id, keys)?)
    }

    /// Sends INIT, with a cookie when one is asked for, until an answer comes.
    pub(crate) fn shake(&mut self, dial: &Dial) -> Outcome<Answer> {
        let response = self.response_to(dial)?;
        Ok(dial.read(&response)?)
    }

    /// The RESPONSE to a dial.
    pub(crate) fn response_to(&mut self, dial: &Dial) -> Outcome<Vec<u8>> {
        let end = self.now() + self.patience;
        let mut init = dial.init().to_vec();
        while self.now() < end {
            self.send(&init)?;
            let until = self.now() + REPEAT;
            while let Some((_, datagram)) = self.next(until.saturating_sub(self.now()))? {
                match HandshakeKind::of(&datagram) {
                    Some(HandshakeKind::Response) => return Ok(datagram),
                    Some(HandshakeKind::Cookie) => {
                        let Ok(packet) = CookiePacket::parse(&datagram) else {
                            return Err(Verdict::Fail("§2.3: a malformed COOKIE".to_owned()));
                        };
                        ensure!(
                            packet.destination() == dial.id(),
                            "§4.13: COOKIE names another connection id"
                        );
                        init = dial.init_with(packet.cookie());
                        break;
                    }
                    _ => {}
                }
            }
        }
        Err(Verdict::Fail("§4.1: INIT is not answered with RESPONSE".to_owned()))
    }

    /// A responder that wants a session.
    pub(crate) fn meet(&mut self, dial: &Dial) -> Outcome<Met> {
        match self.shake(dial)? {
            Answer::Met(met) => Ok(*met),
            Answer::Refusal(code) => Err(Verdict::Fail(format!("§4.5: it refuses with code {code}"))),
        }
    }

    /// A session that this end dialled, confirmed by the subject.
    pub(crate) fn session(&mut self) -> Outcome<Talk> {
        let dial = self.dial()?;
        let met = self.meet(&dial)?;
        let (finish, channel) = met.finish()?;
        let mut talk = Talk::new(channel, &self.profile);
        self.confirm(&finish, &mut talk)?;
        Ok(talk)
    }

    /// Sends FINISH until the subject's first packet comes.
    pub(crate) fn confirm(&mut self, finish: &[u8], talk: &mut Talk) -> Outcome {
        let end = self.now() + self.patience;
        while self.now() < end {
            self.send(finish)?;
            if self.hear(talk, REPEAT)?.is_some() {
                return Ok(());
            }
        }
        Err(Verdict::Fail("§4.10: FINISH is not answered with a protected packet".to_owned()))
    }

    /// Makes the subject dial; returns its INIT.
    pub(crate) fn dialled(&mut self) -> Outcome<Vec<u8>> {
        let id = self.profile.identity.id;
        self.subject.dial(&id)?;
        match self.next_of(HandshakeKind::Init, self.patience)? {
            Some((_, init)) => {
                self.seen.push(init.clone());
                Ok(init)
            }
            None => Err(Verdict::Fail("§4.1: no INIT comes".to_owned())),
        }
    }

    /// What answers the subject's INIT as it should be.
    pub(crate) fn reception(&mut self, init: &[u8]) -> Outcome<Response> {
        let reception = Reception::new(&self.profile, init)?;
        let (id, keys) = (self.id(), self.keys());
        Ok(reception.respond(id, keys)?)
    }

    /// Sends RESPONSE and waits for FINISH; returns the session and what came with FINISH.
    pub(crate) fn received(&mut self, response: &Response) -> Outcome<Talk> {
        self.send(response.datagram())?;
        self.finished(response)
    }

    /// Waits for FINISH; a packet in the same datagram is heard.
    pub(crate) fn finished(&mut self, response: &Response) -> Outcome<Talk> {
        let Some((_, finish)) = self.next_of(HandshakeKind::Finish, self.patience)? else {
            return Err(Verdict::Fail("§4.1: no FINISH comes".to_owned()));
        };
        let (channel, behind) = response.read(&finish)?;
        // A packet travels with the first one only: repetitions are alone.
        self.seen.push(finish[..finish.len() - behind.len()].to_vec());
        self.seen.push(finish.clone());
        let mut talk = Talk::new(channel, &self.profile);
        if !behind.is_empty() {
            talk.open(behind)?;
        }
        Ok(talk)
    }

    /// A session that the subject dialled, confirmed by this end.
    pub(crate) fn dialled_session(&mut self) -> Outcome<Talk> {
        let init = self.dialled()?;
        let response = self.reception(&init)?;
        let mut talk = self.received(&response)?;
        self.alive(&mut talk)?;
        Ok(talk)
    }

    /// Sends the next packet with these frames.
    pub(crate) fn say(&mut self, talk: &mut Talk, frames: &[Frame<'_>], data: &[u8]) -> Outcome<u64> {
        let (number, packet) = talk.seal(frames, data);
        self.send(&packet)?;
        Ok(number)
    }

    /// The next packet of a session; datagrams of others are passed over.
    pub(crate) fn hear(&mut self, talk: &mut Talk, patience: Duration) -> Outcome<Option<Opened>> {
        let end = self.now() + patience;
        while let Some((_, datagram)) = self.next(end.saturating_sub(self.now()))? {
            let own = visible_destination(&datagram).is_some_and(|id| talk.is_own(id));
            if own {
                return talk.open(&datagram).map(Some);
            }
        }
        Ok(None)
    }

    /// Hears packets until `done`, at most for `patience`; returns whether it was done.
    pub(crate) fn hear_until(
        &mut self,
        talk: &mut Talk,
        patience: Duration,
        mut done: impl FnMut(&Talk, &Opened) -> bool,
    ) -> Outcome<bool> {
        let end = self.now() + patience;
        while let Some(opened) = self.hear(talk, end.saturating_sub(self.now()))? {
            if done(talk, &opened) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until packet `number` is acknowledged.
    pub(crate) fn acknowledged(&mut self, talk: &mut Talk, number: u64) -> Outcome {
        let done = talk.is_acked(number)
            || self.hear_until(talk, self.patience, |talk, _| {
                talk.is_acked(number) || talk.closed().is_some()
            })?;
        if let Some(closed) = talk.closed() {
            return Err(Verdict::Fail(format!("the session ended with {closed} where it should go on")));
        }
        ensure!(done, "§8.3: packet {number} is not acknowledged");
        Ok(())
    }

    /// Makes sure that the session goes on.
    pub(crate) fn alive(&mut self, talk: &mut Talk) -> Outcome {
        let ack = talk.ack();
        let (number, packet) = talk.seal_after(&ack, &[Frame::Ping]);
        self.send(&packet)?;
        self.acknowledged(talk, number)
    }

    /// Lets the session come to rest: everything is acknowledged, and nothing comes any more.
    pub(crate) fn rest(&mut self, talk: &mut Talk) -> Outcome {
        for _ in 0..10 {
            self.alive(talk)?;
            let ack = talk.ack();
            self.send(&talk.seal_after(&ack, &[]).1)?;
            self.settle()?;
            if self.hear(talk, Duration::from_millis(60))?.is_none() {
                return Ok(());
            }
        }
        Err(Verdict::Fail("a session without news does not come to rest".to_owned()))
    }

    /// Waits for CLOSE with this code.
    pub(crate) fn violation(&mut self, talk: &mut Talk, what: &str) -> Outcome {
        self.closes(talk, 1, what)
    }

    /// Waits for CLOSE with this code.
    pub(crate) fn closes(&mut self, talk: &mut Talk, code: u32, what: &str) -> Outcome {
        if talk.closed().is_none() {
            self.hear_until(talk, self.patience, |talk, _| talk.closed().is_some())?;
        }
        let expected = super::talk::Closed { application: false, code };
        match talk.closed() {
            Some(closed) if closed == expected => Ok(()),
            Some(closed) => Err(Verdict::Fail(format!("{what}: {closed} instead of {expected}"))),
            None => Err(Verdict::Fail(format!("{what}: no {expected}"))),
        }
    }

    /// Ends a session, so that the subject forgets it.
    pub(crate) fn end(&mut self, mut talk: Talk) -> Outcome {
        self.say(&mut talk, &[Frame::CloseApp { code: 0 }], &[]).map(|_| ())
    }
}

impl From<Refused> for Verdict {
    fn from(refused: Refused) -> Self {
        Self::Fail(refused.to_string())
    }
}

fn network(error: &io::Error) -> Verdict {
    Verdict::Fail(match error.kind() {
        // What the subject owes did not come.
        io::ErrorKind::TimedOut => error.to_string(),
        _ => format!("the network failed: {error}"),
    })
}
