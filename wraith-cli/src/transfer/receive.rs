//! `receive`: dials the sender that a ticket names, fetches, verifies, stores.

use std::sync::Arc;
use std::time::Duration;

use wraith_drivers::{Park, Runner, Unpark};
use wraith_proto::{Identity, Policy};
use wraith_transfer_proto::{Kind, Request, Ticket, TicketError};

use super::dialer::Dialer;
use super::files::Files;
use super::naming::{Existing, Place};
use super::progress::Progress;
use super::receiver::{Order, Received, Receiver};
use super::report::{Done, Speed};
use super::sink::{Sink, Wake};
use super::store::Store;
use super::stream_out::StreamOut;
use super::{endpoint, hex, limits, memory, path, size, transport};
use crate::address::{Target, any};
use crate::args::{self, Common};
use crate::cipher::{self, Offer};
use crate::drive::drive;
use crate::driver_pick::{Job, Picked, has_ipv6, with_driver};
use crate::failure::{Failure, Result, failed};
use crate::identity;
use crate::output::{Output, escape};
use crate::stop::Stop;

/// Fetches what a ticket names.
pub(crate) fn run(common: &Common, args: &args::Receive, stop: Stop) -> Result<()> {
    let output = common.output();
    if args.stdout && output.json {
        return Err(Failure::Usage("--json and --stdout both want stdout: leave one of them out".to_owned()));
    }
    let ticket: Ticket = args.ticket.trim().parse().map_err(bad_ticket)?;
    if ticket.kind != Kind::File {
        return Err(failed("the ticket is for a folder, which this version cannot receive: get a newer one"));
    }
    let targets = targets(&ticket, &args.from, common)?;
    let existing = match (args.overwrite, args.rename) {
        (true, _) => Existing::Overwrite,
        (_, true) => Existing::Rename,
        _ => Existing::Refuse,
    };
    let place = if args.stdout {
        None
    } else {
        Some((Place::new(&args.output, &ticket.name, existing)?, args.files.take(output)))
    };
    let identity = identity::for_run(output, common.identity.as_deref())?;
    let v6 = targets.iter().any(|target| target.addr.is_ipv6());
    let bind = common.bind.unwrap_or_else(|| any(v6));
    let (offer, packet_size) = (common.suite, args.packet_size);
    let patience = args.patience;
    let job = ReceiveJob { output, identity, offer, packet_size, ticket, targets, patience, place, stop };
    with_driver(output, common.driver, &common.device.host(), bind, job)
}

struct ReceiveJob {
    output: Output,
    identity: Identity,
    offer: Offer,
    packet_size: Option<u16>,
    ticket: Ticket,
    targets: Vec<Target>,
    patience: Duration,
    place: Option<(Place, Files)>,
    stop: Stop,
}

impl Job for ReceiveJob {
    type Output = ();

    fn run<D: Park>(self, driver: D, picked: Picked) -> Result<()> {
        let Self { output, identity, offer, packet_size, ticket, targets, patience, place, stop } = self;
        let unparker = driver.unparker();
        let wake: Wake = Arc::new(move || {
            // A loop that cannot be woken ends its wait by itself.
            let _ = unparker.unpark();
        });
        let files = place.as_ref().map(|(_, files)| files.name());
        let sink = match place {
            Some((place, files)) => Sink::file(Store::create(place, &ticket.hash, files)?),
            None => Sink::Stdout(StreamOut::new(Arc::clone(&wake))),
        };
        output.note(format_args!("fetching {} ({})", escape(&ticket.name), size::shown(ticket.size)));
        let now = driver.now();
        let peers = targets.iter().map(|target| target.addr);
        let transport = path::dialling(transport(offer), peers, &driver.caps(), packet_size);
        // One more: a source that is lost may still have its session when another one begins.
        let limits = limits(targets.len() as u32 + 1);
        let endpoint = endpoint(identity, Policy::Set([].into()), limits, transport, now)?;
        let order = Order {
            request: Request::new(Kind::File, ticket.hash),
            token: ticket.token,
            dialer: Dialer::new(targets, now),
            patience,
            sink,
            wake,
        };
        let progress = Progress::new(output, "receiving");
        let mut runner = Runner::new(driver, endpoint, Receiver::new(output, progress, order));
        drive(&mut runner, &stop)?;
        let received = runner.into_parts().2.finish()?;
        report(output, picked, files, &hex(&ticket.hash), &received);
        Ok(())
    }
}

fn report(output: Output, picked: Picked, files: Option<&str>, hash: &str, received: &Received) {
    let Received { bytes, took, kept, peer, address, suite } = received;
    let speed = Speed::new(*bytes, *took, kept.fsync);
    let done = Done {
        bytes: *bytes,
        seconds: speed.seconds,
        gbps: speed.gbps,
        hash,
        driver: picked.name,
        verified: true,
        path: kept.path.as_ref().map(|path| path.to_string_lossy()),
        fsync_seconds: speed.fsync_seconds,
        peer,
        address,
        peak_rss: memory::peak(),
        suite,
        crypto: cipher::LIBRARY,
        files,
    };
    if !output.json {
        let (speed, cipher) = (speed.text(*bytes), cipher::described(suite));
        output.note(format_args!("{speed}, driver {}, {cipher}, verified", picked.name));
    }
    match &kept.path {
        Some(path) => output.path_result(&done, path),
        None => output.event(&done),
    }
}

/// Whom to ask, the ticket's own sender first.
fn targets(ticket: &Ticket, from: &[Target], common: &Common) -> Result<Vec<Target>> {
    let own = ticket.addresses.iter().map(|&addr| Target { id: ticket.peer, addr });
    let mut targets: Vec<Target> = Vec::new();
    for target in own.chain(from.iter().copied()) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    let v6 = match common.bind {
        Some(bind) => bind.is_ipv6(),
        None => has_ipv6(),
    };
    let v4 = common.bind.is_none_or(|bind| bind.is_ipv4() || bind.ip().is_unspecified());
    targets.retain(|target| if target.addr.is_ipv6() { v6 } else { v4 });
    if targets.is_empty() {
        return Err(failed(
            "no address of the sender can be reached from here: give one with --from PEER@ADDR",
        ));
    }
    Ok(targets)
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
