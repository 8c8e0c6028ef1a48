//! `dht put`, `get`, `announce` and `find`: nodes that join, ask and go.

use std::io::{self, Read};

use wraith_dht_proto::{Id, Kind, signed_key};
use wraith_drivers::{Park, Runner};
use wraith_proto::Identity;

use super::announce::Announcer;
use super::args::{DhtAnnounce, DhtFind, DhtGet, DhtPut};
use super::client::{Lookup, Question, ask, closed_endpoint};
use super::part::{DhtPart, NoSessions, Role, WithDht};
use super::questions::{Announce, FindPeer, FindProviders, Get, Put, Signer};
use super::report::Told;
use super::{some_seeds, unix_millis};
use crate::address::{Target, any, reachable};
use crate::args::Common;
use crate::drive::drive;
use crate::driver_pick::{Job, Picked, has_ipv6, with_driver};
use crate::failure::{Failure, Result, failed};
use crate::foreign::{Foreign, unwritten};
use crate::identity;
use crate::output::Output;
use crate::stop::Stop;

/// `dht put`: stores a value, prints its key.
pub(super) fn put(common: &Common, args: DhtPut, stop: &Stop) -> Result<()> {
    let output = common.output();
    let seeds = some_seeds(common, &args.ask.join)?;
    let signer = if args.sign {
        let identity = identity::lasting(output, common.identity.as_deref())?;
        let seq = args.seq.unwrap_or_else(|| unix_millis() / 1_000);
        Some(Signer { identity, salt: args.salt, seq })
    } else {
        None
    };
    let kind = if args.sign { Kind::Signed } else { Kind::Value };
    let value = args.value.map_or_else(|| read_value(kind.max_value()), |value| Ok(value.into_bytes()))?;
    let put = Put { value, signer, expected: args.expected, stored: None };
    if put.with(|_| ()).is_none() {
        return Err(failed(format!(
            "the value is too long: a record carries {} bytes, a signed one {}; store the hash of a file, and \
             `send --announce` the file",
            Kind::Value.max_value(),
            Kind::Signed.max_value()
        )));
    }
    let lookup = Lookup { output, identity: fresh()?, seeds, timeout: args.ask.timeout, keep: args.keep };
    run(common, lookup, put, stop)
}

/// `dht get`: the value of a record, to stdout.
pub(super) fn get(common: &Common, output: Output, args: &DhtGet, stop: &Stop) -> Result<()> {
    let (key, kinds): (_, &[Kind]) = match (&args.key, &args.peer) {
        (Some(_), Some(_)) => {
            return Err(Failure::Usage("a KEY belongs to one peer: leave --peer out".to_owned()));
        }
        (Some(_), None) if args.salt.is_some() => {
            return Err(Failure::Usage("--salt names a record of a peer: add --peer".to_owned()));
        }
        (Some(key), None) => (*key, &[Kind::Value, Kind::Signed]),
        (None, Some(peer)) => (signed_key(peer, args.salt.unwrap_or(0)), &[Kind::Signed]),
        (None, None) => return Err(Failure::Usage("name a KEY, or a peer with --peer".to_owned())),
    };
    let seeds = some_seeds(common, &args.ask.join)?;
    let lookup = Lookup { output, identity: fresh()?, seeds, timeout: args.ask.timeout, keep: false };
    run(common, lookup, Get { key, kinds, found: None }, stop)
}

/// `dht announce`: says that this identity, at this address, has a content.
pub(super) fn announce(common: &Common, args: &DhtAnnounce, stop: &Stop) -> Result<()> {
    let output = common.output();
    let mut seeds = some_seeds(common, &args.ask.join)?;
    let identity = identity::lasting(output, common.identity.as_deref())?;
    seeds.retain(|seed| seed.id != identity.peer_id());
    if seeds.is_empty() {
        return Err(Failure::Usage(
            "the only node that is known here has the identity that is to be announced, and a node tells itself nothing: \
             name another node with --bootstrap PEER@ADDR, or announce another --identity"
                .to_owned(),
        ));
    }
    if common.bind.is_none_or(|bind| bind.port() == 0) {
        output.note(
            "others are told a port of this command alone, where nobody serves: give it --bind of the program that does, or \
             let `send --announce` do it",
        );
    }
    let lookup = Lookup { output, identity, seeds, timeout: args.ask.timeout, keep: args.keep };
    if args.keep {
        let bind = common.bind.unwrap_or_else(|| any(has_ipv6()));
        let host = common.device.host();
        let interface = host.interface().map(str::to_owned);
        let job = AnnounceJob { lookup, key: args.hash, interface, stop };
        return with_driver(output, common.driver, &host, bind, job);
    }
    run(common, lookup, Announce { key: args.hash, nodes: 0 }, stop)
}

/// `dht find`: who provides a content, or where a peer is.
pub(super) fn find(common: &Common, args: &DhtFind, stop: &Stop) -> Result<()> {
    let output = common.output();
    let seeds = some_seeds(common, &args.ask.join)?;
    let lookup = Lookup { output, identity: fresh()?, seeds, timeout: args.ask.timeout, keep: false };
    match (args.hash, args.peer) {
        (Some(key), _) => run(common, lookup, FindProviders { key, providers: Vec::new() }, stop),
        (None, Some(peer)) => run(common, lookup, FindPeer { peer, answered: None, said: Vec::new() }, stop),
        (None, None) => Err(Failure::Usage("name a HASH, or a peer with --peer".to_owned())),
    }
}

/// One that nobody can connect with what this user does elsewhere, and that is not that of a node that runs here.
fn fresh() -> Result<Identity> {
    Ok(Identity::from_seed(identity::random_seed()?))
}

fn run<Q: Question + Told>(common: &Common, lookup: Lookup, question: Q, stop: &Stop) -> Result<()> {
    let bind = common.bind.unwrap_or_else(|| any(has_ipv6()));
    let output = lookup.output;
    let job = AskJob { lookup, question: Telling { question, output }, stop };
    with_driver(output, common.driver, &common.device.host(), bind, job)
}

/// Tells the answer as soon as it is there.
struct Telling<Q> {
    question: Q,
    output: Output,
}

impl<Q: Question + Told> Question for Telling<Q> {
    fn begin(
        &mut self,
        dht: &mut wraith_dht_proto::Dht,
        now: wraith_proto::Instant,
    ) -> std::result::Result<Vec<wraith_dht_proto::QueryId>, wraith_dht_proto::StartError> {
        self.question.begin(dht, now)
    }

    fn take(&mut self, outcome: &wraith_dht_proto::Outcome<'_>) -> bool {
        self.question.take(outcome)
    }

    fn end(&mut self) -> Result<()> {
        self.question.tell(self.output)
    }
}

struct AskJob<'a, Q> {
    lookup: Lookup,
    question: Q,
    stop: &'a Stop,
}

impl<Q: Question> Job for AskJob<'_, Q> {
    type Output = ();

    fn run<D: Park>(self, driver: D, _: Picked) -> Result<()> {
        ask(driver, self.lookup, self.question, self.stop)?.1.map(drop)
    }
}

struct AnnounceJob<'a> {
    lookup: Lookup,
    key: Id,
    /// The device that it is on, if it is one alone.
    interface: Option<String>,
    stop: &'a Stop,
}

impl Job for AnnounceJob<'_> {
    type Output = ();

    fn run<D: Park>(self, driver: D, _: Picked) -> Result<()> {
        let Lookup { output, identity, seeds, .. } = self.lookup;
        let now = driver.now();
        let endpoint = closed_endpoint(identity.clone(), now)?;
        let part = DhtPart::new(identity, Role::Node, seeds, now)?;
        let (local, interface) = (driver.local_addr(), self.interface);
        let addresses = Box::new(move || reachable(local, interface.as_deref()));
        let announcer = Announcer::new(output, self.key, format!("{:?}", self.key), addresses);
        let app = WithDht { app: NoSessions::default(), dht: Some((part, announcer)) };
        drive(&mut Runner::new(driver, endpoint, app), self.stop)?;
        // Nothing else ends it.
        Err(Failure::Interrupted)
    }
}

/// A value from stdin; one byte more than `max` shows that it is too long.
pub(super) fn read_value(max: usize) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    io::stdin().lock().take(max as u64 + 1).read_to_end(&mut value).map_err(|error| {
        failed(format!("cannot read the value from stdin: {error}; give it as an argument"))
    })?;
    Ok(value)
}

/// Writes what was found to stdout.
pub(super) fn write_value(value: &[u8]) -> Result<()> {
    Foreign::stdout().write(value).map_err(|error| unwritten(&error))
}

/// Reads 64 hexadecimal digits.
pub(super) fn parse_key(text: &str) -> std::result::Result<Id, String> {
    let wrong = || "expected 64 hexadecimal digits".to_owned();
    let digits = text.as_bytes();
    let mut key = [0; 32];
    if digits.len() != 2 * key.len() {
        return Err(wrong());
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or_else(wrong);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Ok(Id::from_bytes(key))
}

/// `PEER@ADDR` of each.
pub(super) fn lines(targets: &[Target]) -> String {
    targets.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_64_digits_in_either_case() {
        let key = parse_key(&"0aF9".repeat(16)).unwrap();
        assert_eq!(key.as_bytes()[..4], [0x0a, 0xf9, 0x0a, 0xf9]);
        assert_eq!(format!("{key:?}"), "0af9".repeat(16));
        for wrong in ["", &"a".repeat(63), &"a".repeat(65), &"g".repeat(64), &"é".repeat(32)] {
            assert!(parse_key(wrong).is_err(), "{wrong}");
        }
    }
}
