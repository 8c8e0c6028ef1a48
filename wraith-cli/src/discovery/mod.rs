//! Networks that say who has a content and where a peer is: what is asked of them, and what they are told.
//!
//! What they say is hearsay. A peer proves itself in the handshake, a content by its bytes.

mod announcer;
#[cfg_attr(not(feature = "mainline"), path = "no_mainline.rs")]
mod mainline;
mod seeker;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::{Args, ValueEnum};
use wraith_proto::PeerId;
use wraith_transfer_proto::Hash;

use crate::failure::{Failure, Result};
use crate::output::Output;

#[cfg(feature = "mainline")]
pub(crate) use announcer::AGAIN;
pub(crate) use announcer::Announcer;
use announcer::Publish;
#[cfg(feature = "mainline")]
pub(crate) use mainline::{not_found, not_published, unanswered};
use seeker::Find;
pub(crate) use seeker::Seeker;

/// Said of a build without the network that is asked for.
const NOT_BUILT: &str = "this build cannot reach the BitTorrent DHT: build it with the feature mainline";

/// Who is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Network {
    /// Nobody
    None,
    /// The `BitTorrent` DHT
    Mainline,
}

/// Options of commands that look for something, or announce it.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Network that says who has what: none, mainline (`BitTorrent`'s, public)
    #[arg(
        long = "discovery",
        help = "Network that says who has what: none, mainline (BitTorrent's, which is public)",
        value_name = "NETWORK",
        default_value = "none",
        hide_default_value = true,
        hide_possible_values = true
    )]
    network: Network,
    /// Node of that network to begin with, instead of the well-known ones
    #[arg(long, value_name = "HOST:PORT", requires = "network")]
    mainline_bootstrap: Vec<String>,
}

/// What is looked for, or announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Subject {
    pub(crate) hash: Hash,
    /// Who has it, if that is known.
    pub(crate) peer: Option<PeerId>,
}

impl Options {
    /// Whether anybody is asked or told.
    pub(crate) fn is_on(&self) -> bool {
        self.network != Network::None
    }

    /// Refuses a network that this build cannot reach, and local addresses that it does not know the like of.
    pub(crate) fn check(&self, bind: Option<SocketAddr>) -> Result<()> {
        match self.network {
            Network::None => Ok(()),
            Network::Mainline if !mainline::IS_BUILT => Err(Failure::Usage(NOT_BUILT.to_owned())),
            Network::Mainline => ipv4(bind).map(|_| ()),
        }
    }

    /// Asks where the content may be had, by an address of the peer or of anybody else, the likeliest first. `wake` is
    /// called when an answer is there; one that names nobody is an error.
    pub(crate) fn seek(
        &self,
        output: Output,
        bind: Option<SocketAddr>,
        subject: Subject,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Option<Seeker>> {
        self.check(bind)?;
        let find: Find = match self.network {
            Network::None => return Ok(None),
            Network::Mainline => mainline::finder(output, ipv4(bind)?, &self.mainline_bootstrap, subject),
        };
        Ok(Some(Seeker::start(find, wake)))
    }

    /// Announces, again and again as long as the value lives, that the content and the peer are at the socket `local`.
    /// `addresses` says where this machine is now; whenever that has changed, it is announced anew. `wake` is called when
    /// there is news of it.
    pub(crate) fn announce(
        &self,
        local: SocketAddr,
        mut addresses: impl FnMut() -> Vec<SocketAddr> + Send + 'static,
        subject: Subject,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Option<Announcer>> {
        let publish: Publish = match self.network {
            Network::None => return Ok(None),
            Network::Mainline => {
                mainline::publisher(ipv4(Some(local))?, local.port(), &self.mainline_bootstrap, subject)
            }
        };
        let mut known = addresses();
        let has_moved = move || {
            let now = addresses();
            let moved = now != known;
            known = now;
            moved
        };
        Ok(Some(Announcer::start(publish, has_moved, announcer::Pauses::default(), wake)))
    }
}

/// The address for talking to a network that has IPv4 alone.
fn ipv4(bind: Option<SocketAddr>) -> Result<Ipv4Addr> {
    match bind.map(|bind| bind.ip().to_canonical()) {
        None => Ok(Ipv4Addr::UNSPECIFIED),
        Some(IpAddr::V4(ip)) => Ok(ip),
        Some(IpAddr::V6(ip)) if ip.is_unspecified() => Ok(Ipv4Addr::UNSPECIFIED),
        Some(IpAddr::V6(ip)) => Err(Failure::Usage(format!(
            "`--discovery mainline` knows IPv4 alone, not {ip}: bind an IPv4 address, or leave --bind out"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv4_is_talked_to_from_the_ipv4_address_that_was_asked_for() {
        let of = |text: &str| ipv4(Some(text.parse().unwrap()));
        assert_eq!(ipv4(None), Ok(Ipv4Addr::UNSPECIFIED));
        assert_eq!(of("[::]:5"), Ok(Ipv4Addr::UNSPECIFIED));
        assert_eq!(of("127.0.0.1:5"), Ok(Ipv4Addr::LOCALHOST));
        assert_eq!(of("[::ffff:127.0.0.1]:5"), Ok(Ipv4Addr::LOCALHOST));
        assert!(matches!(of("[::1]:5"), Err(Failure::Usage(_))));
    }
}
