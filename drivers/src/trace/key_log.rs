//! A key log: one line for each secret.

use std::fmt;
use std::io;

use wraith_proto::trace::{Direction, SessionIds, TraceEvent, Tracer};
use wraith_proto::{Instant, SessionHandle};

/// Writes the secrets of sessions, in the spirit of `SSLKEYLOGFILE`. Whoever reads them can read the sessions.
///
/// ```text
/// WRAITH_HEADER_KEY <initiator's id> <responder's id> <direction> <suite> <key>
/// WRAITH_PACKET_KEY <initiator's id> <responder's id> <direction> <suite> <epoch> <key> <nonce prefix>
/// ```
///
/// Each line is flushed, so that a program may read along. After an error of `out` nothing more is written.
pub struct KeyLog<W> {
    out: W,
    failed: bool,
}

impl<W: io::Write> KeyLog<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, failed: false }
    }

    fn write(&mut self, line: &str) {
        if !self.failed {
            self.failed = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush()).is_err();
        }
    }
}

impl<W: io::Write + Send + Sync> Tracer for KeyLog<W> {
    fn event(&mut self, _: Instant, _: Option<SessionHandle>, event: &TraceEvent<'_>) {
        let line = match event {
            TraceEvent::HeaderKey(it) => {
                let whose = Whose(it.ids, it.direction, it.suite.name());
                format!("WRAITH_HEADER_KEY {whose} {}\n", Hex(it.key))
            }
            TraceEvent::PacketKey(it) => {
                let whose = Whose(it.ids, it.direction, it.suite.name());
                format!("WRAITH_PACKET_KEY {whose} {} {} {}\n", it.epoch, Hex(it.key), Hex(it.prefix))
            }
            _ => return,
        };
        self.write(&line);
    }

    fn wants_secrets(&self) -> bool {
        !self.failed
    }
}

impl<W> fmt::Debug for KeyLog<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLog").field("failed", &self.failed).finish_non_exhaustive()
    }
}

/// What a secret is for.
struct Whose(SessionIds, Direction, &'static str);

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ids, direction, suite) = self;
        let direction = match direction {
            Direction::ToResponder => "to_responder",
            Direction::ToInitiator => "to_initiator",
        };
        write!(f, "{:?} {:?} {direction} {suite}", ids.initiator, ids.responder)
    }
}

/// Bytes as lower-case hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
