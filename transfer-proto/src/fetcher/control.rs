//! Messages of sources, and what follows from them.

use super::content::End;
use super::source::{Source, State};
use super::{EndReason, FetchEvent, FetchId, Fetcher};
use crate::code::{Code, Violation};
use crate::control::ControlReader;
use crate::message::Message;
use crate::tree::{ListId, TreeError, TreeVerifier};

impl<S: Copy + Ord, K: Copy + Eq> Fetcher<S, K> {
    /// Takes the next bytes that `source` sent on the control stream, in order and in pieces of any length.
    ///
    /// # Errors
    ///
    /// The rule that the source broke; the caller closes the session with [`Violation::code`]. The source is
    /// forgotten then.
    pub fn handle_control(&mut self, source: S, mut bytes: &[u8]) -> Result<(), Violation> {
        let Some(state) = self.sources.get_mut(&source) else {
            return Ok(());
        };
        let mut reader = core::mem::take(&mut state.reader);
        let result = self.read(source, &mut reader, &mut bytes);
        match (result, self.sources.get_mut(&source)) {
            (Err(violation), _) => self.drop_source(source, EndReason::Violation(violation)),
            (Ok(()), Some(state)) => state.reader = reader,
            (Ok(()), None) => {}
        }
        self.schedule();
        result
    }

    /// Moves bytes for the control stream to `source` into `buffer`; how many. Zero means none are waiting.
    pub fn poll_control(&mut self, source: S, buffer: &mut [u8]) -> usize {
        self.sources.get_mut(&source).map_or(0, |state| state.writer.poll(buffer))
    }

    fn read(&mut self, source: S, reader: &mut ControlReader, bytes: &mut &[u8]) -> Result<(), Violation> {
        while let Some(frame) = reader.next(bytes)? {
            if let Some(message) = Message::decode(frame)? {
                self.on_message(source, &message)?;
            }
        }
        Ok(())
    }

    fn on_message(&mut self, source: S, message: &Message<'_>) -> Result<(), Violation> {
        let state = self.sources.get(&source);
        let running = |transfer: u32| {
            let ask = state.map_or(Ok(None), |state: &Source| state.running(transfer))?;
            Ok(ask.map(|ask| (ask.fetch, ask.state)))
        };
        match *message {
            Message::Offer { transfer, size, complete, top } => match running(transfer)? {
                Some((fetch, State::Asked)) => {
                    self.on_offer(source, transfer, fetch, &Offer { size, complete, top });
                    Ok(())
                }
                Some(_) => Err(Violation::Unsolicited),
                None => Ok(()),
            },
            Message::List { transfer, list, values } => match running(transfer)? {
                Some((fetch, _)) => self.on_list(source, transfer, fetch, list, values),
                None => Ok(()),
            },
            Message::DoneAck { transfer } => match running(transfer)? {
                Some((fetch, State::Confirming)) => {
                    self.on_done_ack(source, transfer, fetch);
                    Ok(())
                }
                Some(_) => Err(Violation::Unsolicited),
                None => Ok(()),
            },
            Message::Refused { transfer, code } => match running(transfer)? {
                Some((_, State::Asked)) => {
                    self.end_ask(source, transfer, EndReason::Refused(code), None);
                    Ok(())
                }
                Some(_) => Err(Violation::Unsolicited),
                None => Ok(()),
            },
            Message::Cancel { transfer, code } => {
                running(transfer)?;
                self.end_ask(source, transfer, EndReason::Cancelled(code), None);
                Ok(())
            }
            Message::Get { .. } | Message::GetList { .. } | Message::Want { .. } | Message::Done { .. } => {
                Err(Violation::WrongSide)
            }
        }
    }

    fn on_offer(&mut self, source: S, transfer: u32, fetch: FetchId, offer: &Offer<'_>) {
        let size = offer.size;
        if self.contents.get(&fetch).is_some_and(|content| content.end != End::Open) {
            self.confirm_late(source, transfer, fetch);
            return;
        }
        if let Err((why, code)) = self.judge_offer(fetch, offer) {
            if why == EndReason::BadList {
                self.stats.bad_lists += 1;
            }
            self.end_ask(source, transfer, why, Some(code));
            return;
        }
        if let Some(ask) = self.sources.get_mut(&source).and_then(|state| state.ask_mut(transfer)) {
            ask.state = State::Offered { size };
        }
        let Some(content) = self.contents.get_mut(&fetch) else {
            return;
        };
        // Its top list was good: a claim that still hangs in the air, of another size, cannot be right as well
        // unless both are lies; the last chunk decides.
        let new = content.verifier.is_none();
        if new && content.claim(size, self.limits.lists).is_ok() {
            self.events.push_back(FetchEvent::Offered { fetch, size });
            if content.proven {
                self.events.push_back(FetchEvent::SizeProven { fetch, size });
            }
        }
        if content.size() == Some(size)
            && let Some(verifier) = &mut content.verifier
            && let Some(top) = verifier.top_list()
        {
            // Judged before; it can only be good.
            let _ = verifier.accept(top, offer.top);
        }
        self.report_completion(fetch);
    }

    /// All was done before the source answered: it hears of that instead of wants.
    fn confirm_late(&mut self, source: S, transfer: u32, fetch: FetchId) {
        let hash = self.contents.get(&fetch).map(|content| content.request.hash);
        if let (Some(hash), Some(state)) = (hash, self.sources.get_mut(&source))
            && let Some(ask) = state.ask_mut(transfer)
        {
            ask.state = State::Confirming;
            state.writer.push(&Message::Done { transfer, hash });
        }
    }

    /// Whether an offer can be that of the content, as far as it can be known before the last chunk.
    fn judge_offer(&self, fetch: FetchId, offer: &Offer<'_>) -> Result<(), (EndReason, Code)> {
        let Some(content) = self.contents.get(&fetch) else {
            return Err((EndReason::Stopped, Code::STOPPED));
        };
        if !offer.complete {
            return Err((EndReason::Incomplete, Code::INCOMPLETE));
        }
        if offer.size > content.request.max_size {
            return Err((EndReason::TooLarge, Code::TOO_LARGE));
        }
        let proven = content.request.resume.as_ref().map(|resume| resume.size);
        let proven = proven.or_else(|| content.size().filter(|_| content.proven));
        if proven.is_some_and(|size| size != offer.size) {
            return Err((EndReason::WrongSize, Code::WRONG_SIZE));
        }
        let mut verifier = TreeVerifier::new(content.request.hash, offer.size, 0)
            .map_err(|_| (EndReason::WrongSize, Code::WRONG_SIZE))?;
        match verifier.top_list().map(|top| verifier.accept(top, offer.top)) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(TreeError::WrongList)) => Err((EndReason::BadList, Code::BAD_LIST)),
            Some(Err(_)) => Err((EndReason::WrongSize, Code::WRONG_SIZE)),
        }
    }

    fn on_list(
        &mut self,
        source: S,
        transfer: u32,
        fetch: FetchId,
        list: ListId,
        values: &[u8],
    ) -> Result<(), Violation> {
        let Some(content) = self.contents.get_mut(&fetch) else {
            return Ok(());
        };
        let asked = content.lists.iter().position(|asked| *asked == (list, source));
        let place = asked.ok_or(Violation::Unsolicited)?;
        content.lists.swap_remove(place);
        let Some(verifier) = &mut content.verifier else {
            return Ok(());
        };
        match verifier.accept(list, values) {
            // A parent that fell out meanwhile is asked for again, and the list after it.
            Ok(()) | Err(TreeError::Missing) => {}
            Err(_) => {
                self.stats.bad_lists += 1;
                self.end_ask(source, transfer, EndReason::BadList, Some(Code::BAD_LIST));
            }
        }
        Ok(())
    }

    fn on_done_ack(&mut self, source: S, transfer: u32, fetch: FetchId) {
        if let Some(state) = self.sources.get_mut(&source) {
            state.asks.retain(|ask| ask.transfer != transfer);
        }
        if let Some(content) = self.contents.get_mut(&fetch) {
            content.end = End::Acknowledged;
        }
        self.events.push_back(FetchEvent::Acknowledged { fetch, source });
        self.forget_if_known(fetch);
    }
}

/// What an `Offer` says.
struct Offer<'a> {
    size: u64,
    complete: bool,
    top: &'a [u8],
}
