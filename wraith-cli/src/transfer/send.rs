//! `send`: hashes a file, prints a ticket, serves it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wraith_dht_proto::Id;
use wraith_drivers::{Park, Runner, Unpark as _};
use wraith_proto::{Identity, Instant, PeerId, Policy, SessionHandle};
use wraith_transfer_proto::{
    Access, ContentKey, Hash, Kind, MAX_ADDRESSES, Provider, ProviderLimits, Ticket, Token, Tree, check_name,
};

use super::files::Files;
use super::progress::Progress;
use super::sender::{Sender, Serving};
use super::source::{FileSource, shown};
use super::{endpoint, hex, limits, path, size, transport};
use crate::address::{Target, any, reachable};
use crate::args::{self, Common};
use crate::cipher::Offer;
use crate::dht::{self, Addresses, Announcer, DhtPart, Role, WithDht};
use crate::discovery::{self, Subject};
use crate::drive::drive;
use crate::driver_pick::{Job, Picked, has_ipv6, with_driver};
use crate::failure::{Failure, Result, failed};
use crate::identity;
use crate::output::{Output, escape};
use crate::stop::Stop;

/// Sessions at the same time.
const SESSIONS: u32 = 8;

#[derive(Serialize)]
#[serde(tag = "event", rename = "ticket")]
struct TicketEvent<'a> {
    ticket: &'a str,
    peer: String,
    hash: &'a str,
    bytes: u64,
    addresses: Vec<String>,
    driver: &'static str,
    mode: &'static str,
}

/// Serves a file until it is delivered, or until Ctrl-C.
pub(crate) fn run(common: &Common, args: &args::Send, stop: Stop) -> Result<()> {
    if args.discovery.is_on() && !args.announce {
        return Err(Failure::Usage(
            "--discovery tells everybody who has the file: add --announce".to_owned(),
        ));
    }
    args.discovery.check(common.bind)?;
    let seeds = if args.announce { dht::seeds(common, &args.bootstrap)? } else { Vec::new() };
    let file = &args.path;
    let output = common.output();
    let name = file_name(file)?;
    let files = args.files.take(output);
    let mut source = FileSource::open(file, files)?;
    let tree = {
        let mut progress = Progress::of_preparation(output, "hashing");
        source.hash(&mut progress)?
    };
    let identity = identity::for_run(output, common.identity.as_deref())?;
    let bind = common.bind.unwrap_or_else(|| any(has_ipv6()));
    let (offer, to, keep, packet_size) = (common.suite, args.to, args.keep, args.packet_size);
    let (announced, discovery) = (args.announce, &args.discovery);
    let host = common.device.host();
    let interface = host.interface();
    let job = SendJob {
        output,
        identity,
        offer,
        packet_size,
        to,
        keep,
        announced,
        discovery,
        seeds,
        name,
        files,
        source,
        tree,
        interface,
        stop,
    };
    with_driver(output, common.driver, &host, bind, job)
}

struct SendJob<'a> {
    output: Output,
    identity: Identity,
    offer: Offer,
    packet_size: Option<u16>,
    to: Option<PeerId>,
    keep: bool,
    /// To everybody who knows the hash.
    announced: bool,
    discovery: &'a discovery::Options,
    /// Nodes of the DHT to announce it through.
    seeds: Vec<Target>,
    name: String,
    files: Files,
    source: FileSource,
    tree: Tree,
    /// The device that it serves on, if it is one alone.
    interface: Option<&'a str>,
    stop: Stop,
}

impl Job for SendJob<'_> {
    type Output = ();

    fn run<D: Park>(self, driver: D, picked: Picked) -> Result<()> {
        let Self {
            output,
            identity,
            offer,
            packet_size,
            to,
            keep,
            announced,
            discovery,
            seeds,
            name,
            files,
            source,
            tree,
            interface,
            stop,
        } = self;
        let local = driver.local_addr();
        let token: Token = random_token()?;
        let ticket = ticket(&tree, name, identity.peer_id(), token, addresses(local, interface));
        let (provider, content) =
            provide(tree, if announced { Access::Announced } else { Access::Token(token) })?;
        let policy = to.map_or(Policy::All, |peer| Policy::Set([peer].into()));
        let transport = path::serving(transport(offer), local, &driver.caps(), packet_size);
        let now = driver.now();
        // Who names another network wants that one.
        let says_so = announced && !discovery.is_on();
        let device = interface.map(str::to_owned);
        let whereabouts = move || reachable(local, device.as_deref());
        let told = Box::new(whereabouts.clone());
        let dht = announcer(output, &identity, says_so, seeds, (&ticket.hash, told), now)?;
        let endpoint = endpoint(identity, policy, limits(SESSIONS), transport, now)?;
        let subject = Subject { hash: ticket.hash, peer: Some(ticket.peer) };
        let unparker = driver.unparker();
        let announcer = discovery.announce(local, whereabouts, subject, move || {
            // A loop that cannot be woken tells it later.
            let _ = unparker.unpark();
        })?;
        let serving = Serving {
            provider,
            content,
            size: ticket.size,
            hash: hex(&ticket.hash),
            files: files.name(),
            keep,
            announced,
            announcer,
        };
        print(output, &ticket, &serving, picked)?;
        let app = WithDht { app: Sender::new(output, picked.name, source, serving), dht };
        let mut runner = Runner::new(driver, endpoint, app);
        drive(&mut runner, &stop)?;
        runner.into_parts().2.app.finish()
    }
}

/// What names the file to whoever gets it.
fn ticket(tree: &Tree, name: String, peer: PeerId, token: Token, addresses: Vec<SocketAddr>) -> Ticket {
    Ticket { kind: Kind::File, hash: tree.hash(), size: tree.size(), name, peer, token, addresses }
}

/// What answers requests for the file.
fn provide(tree: Tree, access: Access) -> Result<(Provider<SessionHandle>, ContentKey)> {
    let limits = ProviderLimits { sessions: SESSIONS as usize, ..ProviderLimits::default() };
    let mut provider = Provider::new(limits, identity::random_seed()?);
    let content = provider.add(tree, Kind::File, access);
    content
        .map(|content| (provider, content))
        .map_err(|error| failed(format!("cannot serve the file: {error}")))
}

/// The node that tells the DHT of an announced file, if one is known to join through.
fn announcer(
    output: Output,
    identity: &Identity,
    says_so: bool,
    seeds: Vec<Target>,
    (hash, addresses): (&Hash, Addresses),
    now: Instant,
) -> Result<Option<(DhtPart, Announcer)>> {
    if seeds.is_empty() {
        if says_so {
            output.note(
                "no node of the DHT is known here: name one with --bootstrap PEER@ADDR to announce it there",
            );
        }
        return Ok(None);
    }
    // The key that it is announced with is the one that answers.
    let part = DhtPart::new(identity.clone(), Role::Node, seeds, now)?;
    Ok(Some((part, Announcer::new(output, Id::from_bytes(*hash), hex(hash), addresses))))
}

/// Prints the ticket: alone on stdout, so that it can be piped.
fn print(output: Output, ticket: &Ticket, serving: &Serving, picked: Picked) -> Result<()> {
    let text = ticket.encode().map_err(|error| failed(format!("cannot make a ticket: {error}")))?;
    output.result(
        &TicketEvent {
            ticket: &text,
            peer: ticket.peer.to_string(),
            hash: &serving.hash,
            bytes: ticket.size,
            addresses: ticket.addresses.iter().map(ToString::to_string).collect(),
            driver: picked.name,
            mode: picked.mode,
        },
        &text,
    );
    if !output.json {
        let (name, size) = (escape(&ticket.name), size::shown(ticket.size));
        output.note(if serving.announced {
            format!("serving {name} ({size}) to everybody who knows this ticket or the hash {}", serving.hash)
        } else {
            format!("serving {name} ({size}); fetch it with `wraith-cli receive` and this ticket, which is a secret")
        });
    }
    Ok(())
}

/// The last component of the path as it goes into a ticket.
fn file_name(path: &Path) -> Result<String> {
    // `.` and `..` have no name of their own.
    let resolved: PathBuf;
    let name = if let Some(name) = path.file_name() {
        name
    } else {
        resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        resolved.file_name().unwrap_or_default()
    };
    let refuse = |why: &dyn std::fmt::Display| {
        failed(format!(
            "{} cannot be sent under its name: {why}; rename it, or send a link with another name",
            shown(path)
        ))
    };
    let name = name.to_str().ok_or_else(|| refuse(&"it is not UTF-8"))?;
    if path.is_dir() {
        // Said by whoever opens it.
        return Ok(name.to_owned());
    }
    check_name(name).map(str::to_owned).map_err(|error| refuse(&error))
}

/// Where the ticket says that the sender is.
fn addresses(local: SocketAddr, interface: Option<&str>) -> Vec<SocketAddr> {
    let all = reachable(local, interface);
    // The last ones are loopback, which stays: both ends may be on one machine.
    let (loopback, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(|addr| addr.ip().is_loopback());
    others.truncate(MAX_ADDRESSES - loopback.len().min(MAX_ADDRESSES));
    others.extend(loopback);
    others.truncate(MAX_ADDRESSES);
    others
}

fn random_token() -> Result<Token> {
    let mut token = Token::default();
    token.copy_from_slice(&identity::random_seed()?[..16]);
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_has_at_most_eight_addresses_and_loopback_among_them() {
        let all = addresses("[::]:9".parse().unwrap(), None);
        assert!(all.len() <= MAX_ADDRESSES);
        assert!(all.contains(&"127.0.0.1:9".parse().unwrap()) && all.contains(&"[::1]:9".parse().unwrap()));
        assert_eq!(addresses("127.0.0.1:9".parse().unwrap(), None), ["127.0.0.1:9".parse().unwrap()]);
    }

    #[test]
    fn a_name_that_no_receiver_takes_is_refused_before_hashing() {
        assert_eq!(file_name(Path::new("/a/b c.txt")), Ok("b c.txt".to_owned()));
        assert!(file_name(Path::new("a\nb")).unwrap_err().to_string().contains("control character"));
    }
}
