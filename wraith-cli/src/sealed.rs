//! `seal` and `open`: one-shot messages from stdin to stdout.

use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use wraith_proto::sealed::{
    HEAD_LEN, Letter, MAX_SEALED_SEGMENT, Mailbox, MessageId, OpenError, OpenStream, Opened,
    SEGMENT_HEADER_LEN, SEGMENT_LEN, SealError,
};

use crate::args::{Common, Open, Seal};
use crate::cipher::PROVIDER;
use crate::failure::{Failure, Result, failed};
use crate::foreign::{Foreign, unwritten};
use crate::identity;
use crate::output::Output;

/// The last time that has four digits for its year, in milliseconds since 1970.
const LAST_TIME: u64 = 253_402_300_799_999;

#[derive(Serialize)]
#[serde(tag = "event", rename = "sealed")]
struct SealedEvent {
    from: String,
    to: String,
    id: String,
    time: u64,
    signed: bool,
    bytes: u64,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "opened")]
struct OpenedEvent {
    from: String,
    id: String,
    time: u64,
    signed: bool,
    bytes: u64,
}

/// `seal`: stdin, sealed to a peer, to stdout.
pub(crate) fn seal(common: &Common, output: Output, args: &Seal) -> Result<()> {
    if io::stdout().is_terminal() {
        return Err(failed("a sealed message is no text: send stdout to a file or a pipe"));
    }
    let identity = identity::lasting(output, common.identity.as_deref())?;
    let mut mailbox = Mailbox::new(identity, PROVIDER, 0);
    let mut id = [0; 16];
    id.copy_from_slice(&identity::random_seed()?[..16]);
    let letter = Letter { to: args.to, id: MessageId(id), time: now(), sign: args.sign };
    let bytes = seal_all(&mut mailbox, &letter)?;
    let event = SealedEvent {
        from: mailbox.peer_id().to_string(),
        to: letter.to.to_string(),
        id: letter.id.to_string(),
        time: letter.time,
        signed: letter.sign,
        bytes,
    };
    output.detail(format_args!("sealed {bytes} bytes as message {} to {}", event.id, event.to));
    output.event(&event);
    Ok(())
}

/// Seals all of stdin; returns how much that was.
fn seal_all(mailbox: &mut Mailbox, letter: &Letter) -> Result<u64> {
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    // A segment is the last if nothing can be read behind it.
    let (mut body, mut next) = (vec![0; SEGMENT_LEN], vec![0; SEGMENT_LEN]);
    let mut out = vec![0; MAX_SEALED_SEGMENT];
    let mut len = fill(&mut stdin, &mut body)?;
    let mut head = [0; HEAD_LEN];
    let randomness = identity::random_seed()?;
    let mut stream = mailbox.begin(letter, &randomness, &body[..len], &mut head).map_err(unsealed)?;
    let mut bytes = len as u64;
    write(&mut stdout, &head)?;
    while len == SEGMENT_LEN {
        let next_len = fill(&mut stdin, &mut next)?;
        if next_len == 0 {
            break;
        }
        let sealed = stream.segment(&body, &mut out).map_err(unsealed)?;
        write(&mut stdout, &out[..sealed])?;
        std::mem::swap(&mut body, &mut next);
        len = next_len;
        bytes += len as u64;
    }
    let sealed = stream.last(&body[..len], &mut out).map_err(unsealed)?;
    write(&mut stdout, &out[..sealed])?;
    Ok(bytes)
}

/// `open`: the body of a message on stdin to stdout, and on stderr what is known of it.
pub(crate) fn open(common: &Common, output: Output, args: &Open) -> Result<()> {
    let identity = identity::existing(common.identity.as_deref())?;
    let mut mailbox = Mailbox::new(identity, PROVIDER, 0);
    let mut stdin = io::stdin().lock();
    let mut head = [0; HEAD_LEN];
    let len = fill(&mut stdin, &mut head)?;
    if len < HEAD_LEN {
        let error =
            if head[..len].starts_with(b"WRAITHS") { OpenError::Truncated } else { OpenError::NotSealed };
        return Err(unopened(error, 0));
    }
    let stream = mailbox.open_head(&head).map_err(|error| unopened(error, 0))?;
    let from = stream.claims().from;
    if let Some(expected) = args.from.filter(|expected| *expected != from) {
        return Err(failed(format!(
            "the message is from {from}, not from {expected}; nothing of it was written"
        )));
    }
    let (opened, bytes) = open_all(stream, &mut stdin)?;
    report(output, &opened, bytes);
    Ok(())
}

/// Opens segment after segment; returns what is proven by then, and how much that was.
fn open_all(mut stream: OpenStream, stdin: &mut impl Read) -> Result<(Opened, u64)> {
    let mut stdout = Foreign::stdout();
    let mut sealed = vec![0; MAX_SEALED_SEGMENT];
    let mut bytes = 0;
    while !stream.is_ended() {
        let mut header = [0; SEGMENT_HEADER_LEN];
        if fill(stdin, &mut header)? < header.len() {
            return Err(unopened(OpenError::Truncated, bytes));
        }
        let len = stream.expects(header).map_err(|error| unopened(error, bytes))?;
        if fill(stdin, &mut sealed[..len])? < len {
            return Err(unopened(OpenError::Truncated, bytes));
        }
        let body = stream.segment(header, &mut sealed[..len]).map_err(|error| unopened(error, bytes))?;
        let len = body.len();
        // The last one is written when it is sure that it is.
        if stream.is_ended() && fill(stdin, &mut [0])? > 0 {
            return Err(unopened(OpenError::Trailing, bytes));
        }
        stdout.write(&sealed[..len]).map_err(|error| unwritten(&error))?;
        bytes += len as u64;
    }
    let opened = stream.end().map_err(|error| unopened(error, bytes))?;
    Ok((opened, bytes))
}

fn report(output: Output, opened: &Opened, bytes: u64) {
    let &Opened { from, id, time, signed } = opened;
    let signature = if signed { "signed" } else { "not signed" };
    output.note(format_args!("from {from}, {}, {signature}, message {id}, {bytes} bytes", shown(time)));
    output.event(&OpenedEvent { from: from.to_string(), id: id.to_string(), time, signed, bytes });
}

/// Reads until `place` is full or nothing comes any more; returns how much there was.
fn fill(from: &mut impl Read, place: &mut [u8]) -> Result<usize> {
    let mut len = 0;
    while len < place.len() {
        match from.read(&mut place[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(failed(format!("cannot read stdin: {error}; check where it comes from")));
            }
        }
    }
    Ok(len)
}

/// Writes a part that whoever reads can use, and keeps nothing of it back.
fn write(to: &mut impl Write, bytes: &[u8]) -> Result<()> {
    to.write_all(bytes).and_then(|()| to.flush()).map_err(|error| unwritten(&error))
}

fn unsealed(error: SealError) -> Failure {
    failed(format!("cannot seal: {error}; check the peer id with the recipient"))
}

/// Why a message did not open, and what came of it before.
fn unopened(error: OpenError, written: u64) -> Failure {
    let remedy = match error {
        OpenError::NotSealed => "give what `wraith-cli seal` wrote",
        OpenError::Version => "open it with a newer wraith-cli",
        OpenError::NotForUs => "choose the identity with --identity, or ask its sender for it again",
        OpenError::Trailing => "open one message at a time",
        _ => "ask its sender for it again",
    };
    let before = match written {
        0 => "nothing of it was written".to_owned(),
        _ => format!("the {written} bytes that were written are its beginning"),
    };
    failed(format!("cannot open the message: {error}; {before}; {remedy}"))
}

/// Milliseconds since 1970; 0 on a clock that is set before.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A sender's time as RFC 3339 has it, if it can be one.
fn shown(time: u64) -> String {
    if time > LAST_TIME {
        return format!("at {time} ms");
    }
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(time);
    humantime::format_rfc3339_millis(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_of_a_sender_can_be_shown() {
        assert_eq!(shown(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(shown(1_764_547_200_123), "2025-12-01T00:00:00.123Z");
        assert_eq!(shown(LAST_TIME), "9999-12-31T23:59:59.999Z");
        assert_eq!(shown(LAST_TIME + 1), "at 253402300800000 ms");
        assert_eq!(shown(u64::MAX), "at 18446744073709551615 ms");
    }
}
