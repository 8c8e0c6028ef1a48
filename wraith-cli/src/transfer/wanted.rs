//! What `receive` is asked for: a ticket, or the hash of content that somebody has announced.

use wraith_proto::PeerId;
use wraith_transfer_proto::{Hash, Kind, Ticket, TicketError, Token};

use super::{hex, size};
use crate::address::{Candidate, Target};
use crate::failure::{Failure, Result, failed};
use crate::output::escape;

/// A content, and what is known of it beforehand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    pub(super) hash: Hash,
    /// The name of the file; without a ticket the hash is all there is.
    pub(super) name: String,
    /// What the ticket says, in bytes.
    size: Option<u64>,
    pub(super) token: Option<Token>,
    /// The sender.
    pub(super) peer: Option<PeerId>,
    /// Where the ticket says that the sender is.
    pub(super) candidates: Vec<Candidate>,
}

impl Wanted {
    /// Reads a ticket, or 64 hexadecimal digits.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some(hash) = parse_hash(text) {
            let (size, token, peer, candidates) = (None, None, None, Vec::new());
            return Ok(Self { hash, name: hex(&hash), size, token, peer, candidates });
        }
        let ticket: Ticket = text.parse().map_err(bad_ticket)?;
        if ticket.kind != Kind::File {
            return Err(failed(
                "the ticket is for a folder, which this version cannot receive: get a newer one",
            ));
        }
        let at = |&addr| Candidate::from(Target { id: ticket.peer, addr });
        let candidates = ticket.addresses.iter().map(at).collect();
        let Ticket { hash, name, size, token, peer, .. } = ticket;
        Ok(Self { hash, name, size: Some(size), token: Some(token), peer: Some(peer), candidates })
    }

    /// What it is, for people.
    pub(super) fn shown(&self) -> String {
        let name = escape(&self.name);
        match self.size {
            Some(size) => format!("{name} ({})", size::shown(size)),
            None => name,
        }
    }
}

/// A hash in either case; no ticket has its length in these characters alone, since each begins with `wraith`.
fn parse_hash(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    let digits = text.as_bytes();
    if digits.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(hash)
}

fn bad_ticket(error: TicketError) -> Failure {
    failed(match error {
        TicketError::Damaged => {
            "the ticket is damaged: copy the line that `wraith-cli send` printed, whole".to_owned()
        }
        TicketError::NotATicket => format!("{error}; copy the line that `wraith-cli send` printed"),
        TicketError::Version => format!("{error}: use the version of `wraith-cli` that the sender has"),
        _ => format!("{error}: get a new one from the sender"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_digits_are_a_hash_and_name_the_file() {
        let text = "0123456789ABCDEFabcdef0123456789".repeat(2);
        let wanted = Wanted::parse(&format!(" {text}\n")).unwrap();
        assert_eq!((wanted.hash[0], wanted.hash[15], wanted.hash[31]), (0x01, 0x89, 0x89));
        assert_eq!(wanted.name, text.to_lowercase());
        assert_eq!((wanted.token, wanted.size, wanted.candidates.len()), (None, None, 0));
        assert_eq!(wanted.shown(), text.to_lowercase());
    }

    #[test]
    fn what_is_neither_hash_nor_ticket_is_refused_with_the_remedy() {
        for wrong in [&"a".repeat(63), &"a".repeat(65), &"g".repeat(64), &"é".repeat(32)] {
            let refusal = Wanted::parse(wrong).unwrap_err().to_string();
            assert!(refusal.ends_with("copy the line that `wraith-cli send` printed"), "{refusal}");
        }
    }
}
