//! `dht put`, `get`, `announce` and `find` with `--discovery mainline`: the same on the `BitTorrent` DHT, as far as it can
//! do it (`docs/decisions/020-mainline.md`).

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use wraith_dht_proto::Id;
use wraith_mainline::{GetError, Limit, Mainline, PutError, Record, Stored, record_key};

use super::args::{Ask, DhtAnnounce, DhtFind, DhtGet, DhtPut};
use super::events::{AnnouncedEvent, FoundEvent, StoredEvent, ValueEvent};
use super::questions::Signer;
use super::verbs::{read_value, write_value};
use crate::address::Target;
use crate::args::Common;
use crate::backoff::Backoff;
use crate::discovery::{AGAIN, not_found, not_published, unanswered};
use crate::failure::{Failure, Result, failed};
use crate::identity;
use crate::output::Output;
use crate::stop::Stop;

/// Nodes keep an item for two hours (BEP 44).
const STORE_AGAIN: Duration = Duration::from_hours(1);

/// A node of that network, and for how long it is asked.
struct Asker<'a> {
    output: Output,
    node: Mainline,
    timeout: Duration,
    stop: &'a Stop,
}

impl<'a> Asker<'a> {
    /// Refuses what leads to another network.
    fn new(common: &Common, ask: &Ask, stop: &'a Stop) -> Result<Self> {
        if !ask.join.bootstrap.is_empty() || ask.join.state.is_some() {
            return Err(Failure::Usage(
                "--bootstrap and --state lead to WRAITH's own DHT: leave them out, or --discovery; a node of the \
                 BitTorrent DHT is named with --mainline-bootstrap"
                    .to_owned(),
            ));
        }
        let node = ask.discovery.open(common.bind)?;
        Ok(Self { output: common.output(), node, timeout: ask.timeout, stop })
    }

    /// Asks for as long as was allowed.
    fn within<T>(&self, ask: impl FnOnce(&Mainline, Limit<'_>) -> T) -> T {
        let is_stopped = || self.stop.is_wanted();
        ask(&self.node, Limit { deadline: Instant::now() + self.timeout, is_stopped: &is_stopped })
    }

    /// Does it again after `pause`, each time, until Ctrl-C. One that failed is tried again earlier.
    fn keep(&self, pause: Duration, mut again: impl FnMut() -> Result<()>) -> Result<()> {
        let mut backoff = Backoff::of_network();
        let mut wait = pause;
        loop {
            let until = Instant::now() + wait;
            while Instant::now() < until {
                if self.stop.is_wanted() {
                    return Err(Failure::Interrupted);
                }
                thread::park_timeout(until.saturating_duration_since(Instant::now()));
            }
            match again() {
                Ok(()) => {
                    backoff.reset();
                    wait = pause;
                }
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                Err(failure) => {
                    wait = backoff.pause();
                    self.output.note(format_args!("{failure}; trying again in {} s", wait.as_secs().max(1)));
                }
            }
        }
    }
}

/// `dht put --sign`: stores a record, prints its key.
pub(super) fn put(common: &Common, args: &DhtPut, stop: &Stop) -> Result<()> {
    if !args.sign {
        return Err(Failure::Usage(
            "the BitTorrent DHT has no place for a value under its hash: sign it with --sign".to_owned(),
        ));
    }
    let asker = Asker::new(common, &args.ask, stop)?;
    let identity = identity::lasting(asker.output, common.identity.as_deref())?;
    let seq = args.seq.unwrap_or_else(|| super::unix_millis() / 1_000);
    let signer = Signer { identity, salt: args.salt, seq };
    let max = wraith_mainline::MAX_VALUE;
    let value = args.value.clone().map_or_else(|| read_value(max), |value| Ok(value.into_bytes()))?;
    let Stored { key, nodes } = asker.put(&signer, &value, args.expected)?;
    let key = format!("{:?}", Id::from_bytes(key));
    let Signer { identity, salt, seq } = &signer;
    let (peer, salt, seq) = (Some(identity.peer_id().to_string()), Some(*salt), Some(*seq));
    asker.output.result(&StoredEvent { key: &key, nodes, peer, salt, seq }, &key);
    if !asker.output.json {
        asker.output.note(format_args!("kept by {nodes} nodes of the BitTorrent DHT, for two hours"));
    }
    if !args.keep {
        return Ok(());
    }
    asker.keep(STORE_AGAIN, || asker.put(&signer, &value, None).map(drop))
}

impl Asker<'_> {
    /// Stores it, unless the network has a record that is not to be replaced by it. That network itself takes another
    /// record with the same number, so what is there is looked at before.
    fn put(&self, signer: &Signer, value: &[u8], expected: Option<u64>) -> Result<Stored> {
        let Signer { identity, salt, seq } = signer;
        if value.len() > wraith_mainline::MAX_VALUE || *seq > wraith_mainline::MAX_SEQ {
            return Err(failed(format!(
                "a record on the BitTorrent DHT carries {} bytes, and a sequence number up to {}: store the hash of a \
                 file, and `send --announce` the file",
                wraith_mainline::MAX_VALUE,
                wraith_mainline::MAX_SEQ
            )));
        }
        let there = match self.within(|node, limit| node.get_record(&record_key(identity), *salt, limit)) {
            Ok(record) => Some(record),
            // What others have put there is in nobody's way.
            Err(GetError::NotFound | GetError::Forged) => None,
            Err(GetError::Stopped) => return Err(Failure::Interrupted),
            Err(error) => return Err(unanswered(error)),
        };
        if let Some(refused) = refusal(there.as_ref(), *seq, value, expected) {
            return Err(refused);
        }
        let stored = self.within(|node, limit| match expected {
            Some(expected) => node.replace_record(identity, *salt, expected, *seq, value, limit),
            None => node.put_record(identity, *salt, *seq, value, limit),
        });
        stored.map_err(|error| match error {
            PutError::Stopped => Failure::Interrupted,
            PutError::Outdated | PutError::Conflict => {
                failed(format!("{error}: look at it with `dht get`, and retry with a higher --seq"))
            }
            error => unanswered(error),
        })
    }
}

/// Why a record must not replace what is `there`, as on our own DHT (`PROTO §14.13`).
fn refusal(there: Option<&Record>, seq: u64, value: &[u8], expected: Option<u64>) -> Option<Failure> {
    let Some(there) = there else {
        return expected.map(|expected| {
            failed(format!(
                "no record with sequence number {expected} is there to be replaced: leave --expected out to store one"
            ))
        });
    };
    let is_same = there.seq == seq && there.value == value;
    let is_other = expected.is_some_and(|expected| expected != there.seq);
    (is_other || (there.seq >= seq && !is_same)).then(|| {
        failed(format!(
            "a record with sequence number {} is there: look at it with `dht get`, and give --seq {} to replace it",
            there.seq,
            there.seq.saturating_add(1)
        ))
    })
}

/// `dht get`: the value of a record, to stdout.
pub(super) fn get(common: &Common, output: Output, args: &DhtGet, stop: &Stop) -> Result<()> {
    let Some(key) = args.key else {
        return Err(Failure::Usage(
            "the BitTorrent DHT finds no record by its peer alone: give the KEY that `dht put` printed"
                .to_owned(),
        ));
    };
    let asker = Asker::new(common, &args.ask, stop)?;
    let salt = args.salt.unwrap_or(0);
    let record = asker.within(|node, limit| node.get_record(key.as_bytes(), salt, limit));
    let record = record.map_err(|error| match error {
        GetError::Stopped => Failure::Interrupted,
        GetError::NotFound => failed(format!(
            "{error}: it was never stored, or has expired; ask its owner to put it again, and which --salt it has"
        )),
        GetError::Forged => failed(format!("{error}: ask its owner for the key again")),
        error => unanswered(error),
    })?;
    if let Some(peer) = args.peer.filter(|peer| *peer != record.peer) {
        return Err(failed(format!(
            "the record is of {}, not of {peer}: ask its owner for the key again",
            record.peer
        )));
    }
    write_value(&record.value)?;
    let Record { peer, salt, seq, value, .. } = record;
    let bytes = value.len();
    let peer = peer.to_string();
    if !output.json {
        output.detail(format_args!("signed by {peer}, record {salt}, sequence number {seq}"));
    }
    let (peer, salt, seq) = (Some(peer), Some(salt), Some(seq));
    output.event(&ValueEvent { key: format!("{key:?}"), bytes, hops: None, peer, salt, seq });
    Ok(())
}

/// `dht announce`: says that this identity has a content, on a port of this machine.
pub(super) fn announce(common: &Common, args: &DhtAnnounce, stop: &Stop) -> Result<()> {
    let Some(port) = common.bind.map(|bind| bind.port()).filter(|port| *port != 0) else {
        return Err(Failure::Usage(
            "the BitTorrent DHT is told a port: name that of the program which serves the content, with --bind :PORT"
                .to_owned(),
        ));
    };
    let asker = Asker::new(common, &args.ask, stop)?;
    let peer = identity::lasting(asker.output, common.identity.as_deref())?.peer_id();
    let hash = format!("{:?}", args.hash);
    let announce = || {
        let (output, node_of) = (asker.output, args.hash.as_bytes());
        asker
            .within(|node, limit| {
                node.publish_content(node_of, port, limit)?;
                node.publish_peer(&peer, port, limit)
            })
            .map_err(not_published)?;
        let text = format!("port {port} of this machine was named for {hash}, for half an hour or so");
        output.result(&AnnouncedEvent { hash: &hash, nodes: None }, text);
        Ok(())
    };
    announce()?;
    if args.keep { asker.keep(AGAIN, announce) } else { Ok(()) }
}

/// `dht find`: where a content may be had, or a peer is said to be.
pub(super) fn find(common: &Common, args: &DhtFind, stop: &Stop) -> Result<()> {
    let asker = Asker::new(common, &args.ask, stop)?;
    let found = asker.within(|node, limit| match (&args.hash, &args.peer) {
        (Some(hash), _) => node.find_content(hash.as_bytes(), limit),
        (None, Some(peer)) => node.find_peer(peer, limit),
        (None, None) => Ok(Vec::new()),
    });
    let found = found.map_err(not_found)?;
    if found.is_empty() {
        return Err(failed(match (&args.hash, &args.peer) {
            (None, Some(peer)) => format!(
                "the BitTorrent DHT does not know where {peer} is: it announces nothing there, or under another id"
            ),
            (hash, _) => format!(
                "nobody announces {:?} on the BitTorrent DHT: its owner runs `wraith-cli send --announce --discovery \
                 mainline`",
                hash.unwrap_or(Id::from_bytes([0; 32]))
            ),
        }));
    }
    for addr in found {
        let addr = SocketAddr::V4(addr);
        let target = args.peer.map(|id| Target { id, addr });
        let event = FoundEvent {
            peer: args.peer.map(|peer| peer.to_string()),
            address: addr.to_string(),
            target: target.map(|target| target.to_string()),
            answered: false,
        };
        let text = target.map_or_else(|| addr.to_string(), |target| target.to_string());
        asker.output.result(&event, text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wraith_proto::Identity;

    use super::*;

    fn record(seq: u64) -> Record {
        let peer = Identity::from_seed([1; 32]).peer_id();
        Record { peer, salt: 0, seq, signature: [0; 64], value: b"there".to_vec() }
    }

    /// Whether it is refused.
    fn is_refused(there: Option<u64>, seq: u64, value: &[u8], expected: Option<u64>) -> bool {
        refusal(there.map(record).as_ref(), seq, value, expected).is_some()
    }

    /// `PROTO §14.13`
    #[test]
    fn a_record_replaces_one_with_a_lower_number_and_the_expected_one_alone() {
        assert!(!is_refused(None, 1, b"new", None));
        assert!(!is_refused(Some(4), 5, b"new", None));
        assert!(!is_refused(Some(5), 5, b"there", None), "the very record is stored again");
        assert!(is_refused(Some(5), 5, b"new", None));
        assert!(is_refused(Some(6), 5, b"new", None));
        assert!(!is_refused(Some(4), 5, b"new", Some(4)));
        assert!(is_refused(Some(3), 5, b"new", Some(4)));
        assert!(is_refused(None, 5, b"new", Some(4)));
    }
}
