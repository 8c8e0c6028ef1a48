//! `--discovery mainline`: the `BitTorrent` DHT.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use wraith_mainline::{FindError, Limit, Mainline, PublishError, StartError};

use super::{Find, Options, Publish, Subject, ipv4};
use crate::address::Candidate;
use crate::failure::{Failure, Result, failed};
use crate::output::Output;

pub(super) const IS_BUILT: bool = true;

/// How long a question or an announcement may take: several rounds of requests, each of which waits for 2 s at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// What to do when nobody is there.
const REMEDY: &str = "check that no firewall stops UDP, or name a node of it with --mainline-bootstrap";

/// Asks where the peer is said to be, and then where anybody is who says to have the content.
pub(super) fn finder(output: Output, bind: Ipv4Addr, bootstrap: &[String], subject: Subject) -> Find {
    let bootstrap = bootstrap.to_vec();
    let mut node = None;
    Box::new(move |is_stopped| {
        // Names are looked up for it, which may fail now and succeed later.
        let node = if let Some(node) = &mut node {
            node
        } else {
            output.note("asking the BitTorrent DHT who has it");
            node.insert(start(bind, &bootstrap)?)
        };
        let limit = || Limit { deadline: Instant::now() + PATIENCE, is_stopped };
        let mut candidates = Vec::new();
        if let Some(peer) = subject.peer {
            let found = node.find_peer(&peer, limit()).map_err(not_found)?;
            candidates.extend(found.into_iter().map(|addr| candidate(addr, Some(peer))));
        }
        let found = node.find_content(&subject.hash, limit()).map_err(not_found)?;
        candidates.extend(found.into_iter().map(|addr| candidate(addr, None)));
        output.detail(format_args!("the BitTorrent DHT names {} addresses", candidates.len()));
        if candidates.is_empty() {
            return Err(failed(
                "nobody is known to have it: check the hash, or ask its owner to `send --announce` it with this --discovery",
            ));
        }
        Ok(candidates)
    })
}

fn candidate(addr: SocketAddrV4, id: Option<wraith_proto::PeerId>) -> Candidate {
    Candidate { id, addr: SocketAddr::V4(addr) }
}

/// Announces the content, and the peer that has it, on UDP `port` of this machine.
pub(super) fn publisher(bind: Ipv4Addr, port: u16, bootstrap: &[String], subject: Subject) -> Publish {
    let bootstrap = bootstrap.to_vec();
    let mut node = None;
    Box::new(move |is_stopped| {
        // Names are looked up for it, which may fail now and succeed later.
        let node = match &mut node {
            Some(node) => node,
            None => node.insert(start(bind, &bootstrap)?),
        };
        let limit = || Limit { deadline: Instant::now() + PATIENCE, is_stopped };
        node.publish_content(&subject.hash, port, limit()).map_err(not_published)?;
        match subject.peer {
            Some(peer) => node.publish_peer(&peer, port, limit()).map_err(not_published),
            None => Ok(()),
        }
    })
}

impl Options {
    /// A node of the network, on the address that was asked for.
    pub(crate) fn open(&self, bind: Option<SocketAddr>) -> Result<Mainline> {
        start(ipv4(bind)?, &self.mainline_bootstrap)
    }
}

fn start(bind: Ipv4Addr, bootstrap: &[String]) -> Result<Mainline> {
    Mainline::start(bind, bootstrap).map_err(|error| {
        failed(match error {
            StartError::NoBootstrap => {
                "no node of --mainline-bootstrap has an IPv4 address: give HOST:PORT of one that has"
                    .to_owned()
            }
            error => format!(
                "cannot open a socket for the BitTorrent DHT: {error}; choose another address with --bind"
            ),
        })
    })
}

pub(crate) fn not_found(error: FindError) -> Failure {
    if error == FindError::Stopped { Failure::Interrupted } else { unanswered(error) }
}

pub(crate) fn not_published(error: PublishError) -> Failure {
    if error == PublishError::Stopped { Failure::Interrupted } else { unanswered(error) }
}

pub(crate) fn unanswered(error: impl fmt::Display) -> Failure {
    failed(format!("{error}: {REMEDY}"))
}
