//! A source that was lost: it is looked for while the patience lasts, and what is verified stays. One that has nothing
//! makes way for the next, and while there is nobody, networks are asked who else has it. When all is there, the source is looked for to be told so (`PROTO §10.12`).

use wraith_proto::{CloseReason, Endpoint, Instant};
use wraith_transfer_proto::Code;

use super::Receiver;
use crate::address::Target;
use crate::failure::{Failure, failed};
use crate::transfer::watch::Stall;

/// A source that is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    target: Target,
    until: Instant,
}

impl Receiver {
    /// The session with `target` has ended; whether the source is looked for.
    pub(super) fn may_return(&mut self, now: Instant, target: Target, reason: CloseReason) -> bool {
        let silent = matches!(reason, CloseReason::IdleTimeout | CloseReason::HandshakeTimeout);
        let looks = silent && !self.patience.is_zero();
        if looks {
            self.begin_search(now, target);
        }
        looks
    }

    /// Dials who is due, for the first time or again, and ends a search that has taken too long.
    pub(super) fn look(&mut self, now: Instant, endpoint: &mut Endpoint) {
        self.notice_silence(now, endpoint);
        self.ask_networks(now);
        if self.link.is_some() && self.search.is_none() {
            return;
        }
        self.dialer.dial_due(now, endpoint);
        if let Some(silent) = self.dialer.take_silent() {
            self.progress.clear();
            let patience = self.patience.as_secs_f64();
            self.output.note(format_args!("no answer from {silent}: trying for up to {patience} s"));
        }
        if let Some(failure) = self.dialer.failure().filter(|_| self.link.is_none()) {
            self.fail_source(now, failure);
        }
        if self.link.is_none()
            && self.search.is_none()
            && self.dialer.is_idle()
            && let Some(failure) = self.quest.take_failure(now)
        {
            self.fail_source(now, failure);
        }
        let Some(Search { target, .. }) = self.search.filter(|search| self.ends(search, now)) else { return };
        let failure = self.dialer.impostor().unwrap_or_else(|| {
            let patience = self.patience.as_secs_f64();
            failed(format!(
                "{target} is gone before everything arrived, and did not come back in {patience} s: \
                 retry when it is back, with its new ticket if it was started again"
            ))
        });
        self.fail_source(now, failure);
    }

    /// The source at `target` brings nothing more. Another peer may; if there is none, this is how the transfer fails.
    pub(super) fn fail_at(&mut self, now: Instant, target: Target, failure: Failure) {
        let others = self.complete.is_none() && self.outcome.is_none() && self.dialer.pass_on(target, now);
        if !others {
            self.fail_source(now, failure);
            return;
        }
        self.progress.clear();
        self.output.note(format_args!("{failure}; asking others"));
        self.leave_link();
    }

    /// The source cannot be had, or no longer. If all of the content is there, it is only not told; and while networks may
    /// name another one, that one is waited for.
    pub(super) fn fail_source(&mut self, now: Instant, failure: Failure) {
        if self.complete.is_some() {
            self.told = true;
        } else if self.outcome.is_none() && self.quest.is_open(now) {
            self.leave_link();
            let note = self.quest.wait(failure, now, self.dialer.has_tried());
            self.note(note);
        } else {
            let why = self.quest.take_why().filter(|_| !self.dialer.has_tried());
            self.fail(now, why.unwrap_or(failure), Code::STOPPED);
        }
    }

    /// Lets go of the source, which has nothing more to bring.
    fn leave_link(&mut self) {
        self.search = None;
        if let Some(link) = self.link.take() {
            self.fetcher.remove_source(link.session);
            self.left = Some(link.session);
        }
    }

    /// Whether there is nobody who brings the content.
    fn needs_source(&self) -> bool {
        let is_alone = self.link.is_none() || self.search.is_some();
        is_alone && self.complete.is_none() && self.outcome.is_none()
    }

    /// Asks networks who else has it, while nobody brings it, and takes whom they name.
    fn ask_networks(&mut self, now: Instant) {
        let needed = self.needs_source();
        let others = self.link.is_some() || self.dialer.failure().is_none();
        let found = self.quest.turn(now, needed, others);
        self.note(found.notes);
        if needed {
            self.dialer.add(found.candidates, now);
        } else {
            self.dialer.keep(found.candidates);
        }
    }

    fn note(&mut self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            self.progress.clear();
            self.output.note(line);
        }
    }

    /// The source answers in another session now.
    pub(super) fn leave_old_link(&mut self, now: Instant, endpoint: &mut Endpoint) {
        self.search = None;
        let Some(old) = self.link.take() else { return };
        self.fetcher.remove_source(old.session);
        if let Some(mut session) = endpoint.session(old.session) {
            session.close(now, 0);
        }
    }

    /// When a dial is due, or the silence of the source, or the end of the patience.
    pub(super) fn search_wake_at(&self) -> Option<Instant> {
        let dials = self.link.is_none() || self.search.is_some();
        let dial = self.dialer.wake_at().filter(|_| dials);
        // Without patience nobody listens to it.
        let listens = !dials && !self.patience.is_zero();
        let pulse = self.link.as_ref().filter(|_| listens).map(|link| link.pulse.next());
        let until = self.search.filter(|_| self.link.is_none()).map(|search| search.until);
        let ask = self.quest.wake_at().filter(|_| self.needs_source());
        [dial, pulse, until, ask].into_iter().flatten().min()
    }

    /// A source of which no packet comes is dialled beside its session, which goes on if it comes back to life.
    fn notice_silence(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let Some(link) = &mut self.link else { return };
        let Some(packets) = endpoint.session(link.session).map(|session| session.stats().packets_received)
        else {
            return;
        };
        let (target, lives) = (link.target, link.count(now, packets));
        if lives && self.search.take().is_some() {
            self.dialer.stop(now, endpoint);
        } else if !lives && !self.patience.is_zero() && link.pulse.check(now) != Stall::No {
            self.begin_search(now, target);
        }
    }

    fn begin_search(&mut self, now: Instant, target: Target) {
        if self.search.is_some() {
            return;
        }
        self.search = Some(Search { target, until: now.saturating_add(self.patience) });
        self.dialer.seek(target, now);
        self.progress.clear();
        let patience = self.patience.as_secs_f64();
        let why = if self.complete.is_none() { "looking for it" } else { "all has arrived, telling it so" };
        self.output.note(format_args!("{target} does not answer: {why} for up to {patience} s"));
    }

    /// Whether a search has taken too long. A session that is still there has the time that it has.
    fn ends(&self, search: &Search, now: Instant) -> bool {
        self.link.is_none() && now >= search.until
    }
}
