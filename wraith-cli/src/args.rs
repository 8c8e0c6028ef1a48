//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use wraith_proto::PeerId;

use crate::address::{Target, parse_bind, parse_node};
use crate::cipher::Offer;
use crate::device;
use crate::dht::args::{Dht, DhtCommand};
use crate::discovery;
use crate::driver_pick::{self, Choice};
use crate::duration;
use crate::output::Output;
use crate::trace;
use crate::transfer::{files, size};

/// Files, streams and datagrams between machines that know each other's keys.
#[derive(Parser, Debug)]
#[command(name = "wraith-cli", version, disable_help_subcommand = true, after_help = EXAMPLES)]
// The usual one but for an empty line behind the first, which the screen has no room for.
#[command(help_template = "{about-with-newline}{usage-heading} {usage}\n\n{all-args}{after-help}")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Try it: `wraith-cli demo`. Between two machines: `send FILE` on one, `receive TICKET` on the other, with its ticket.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 Ctrl-C or SIGTERM.";

/// Options of every command, before or after its name.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// How packets travel
    #[arg(
        long,
        help = driver_pick::help(),
        global = true,
        display_order = 101,
        value_name = "DRIVER",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) driver: Choice,
    #[command(flatten)]
    pub(crate) device: device::Device,
    /// Cipher suite: auto, aes-256-gcm, xchacha20-poly1305
    #[arg(
        long,
        global = true,
        display_order = 102,
        value_name = "SUITE",
        default_value = "auto",
        hide_default_value = true
    )]
    pub(crate) suite: Offer,
    /// Local address: ip:port, ip or :port
    #[arg(long, global = true, display_order = 103, value_name = "ADDR", value_parser = parse_bind)]
    pub(crate) bind: Option<SocketAddr>,
    /// Identity file, made if missing; else a fresh one, but for `id`, `keygen`, `seal`, `open`, `dht`
    #[arg(long, global = true, display_order = 104, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long, global = true, display_order = 105)]
    json: bool,
    /// No messages but errors
    #[arg(short, long, global = true, display_order = 106)]
    quiet: bool,
    /// More messages, unless --quiet
    #[arg(short, long, global = true, display_order = 107)]
    verbose: bool,
    #[command(flatten)]
    pub(crate) trace: trace::Options,
}

impl Common {
    pub(crate) fn output(&self) -> Output {
        Output {
            json: self.json,
            quiet: self.quiet,
            verbose: self.verbose && !self.quiet,
            ..Output::default()
        }
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Make an identity file and print its peer id
    Keygen(Keygen),
    /// Print the peer id of an identity file
    Id,
    /// Accept sessions: answer `ping` and `bench --connect`
    Listen(Listen),
    /// Measure round trips of a session
    Ping(Ping),
    /// Measure throughput: encrypted, counted at the receiver, beside the bare socket
    Bench(Bench),
    /// Offer a file: print a ticket and serve it
    Send(Send),
    /// Fetch what a ticket or a hash names, verified
    Receive(Receive),
    /// Send a file from one process of this machine to another
    Demo(Demo),
    /// Seal stdin to a peer, to stdout
    Seal(Seal),
    /// Open what `seal` wrote, from stdin to stdout
    Open(Open),
    /// Find peers and content without a server: run a node, put, get, announce, find
    Dht(Dht),
    /// Show what each driver can do here
    Drivers,
}

impl Command {
    /// Whether stdout carries data, so that lines of JSON go to stderr.
    pub(crate) fn has_data_on_stdout(&self) -> bool {
        matches!(self, Self::Seal(_) | Self::Open(_) | Self::Dht(Dht { command: DhtCommand::Get(_) }))
    }

    /// Whether it has nothing to do with the network.
    #[cfg(any(feature = "trace", all(feature = "af-xdp", target_os = "linux")))]
    pub(crate) fn has_no_session(&self) -> bool {
        matches!(
            self,
            Self::Dht(Dht { command: DhtCommand::Sim(_) })
                | Self::Drivers
                | Self::Keygen(_)
                | Self::Id
                | Self::Seal(_)
                | Self::Open(_)
        )
    }
}

#[derive(Args, Debug)]
pub(crate) struct Keygen {
    /// Where to
    #[arg(
        short,
        long,
        value_name = "FILE",
        help = "Where to [default: $XDG_CONFIG_HOME/wraith/identity, or under ~/.config]"
    )]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing identity
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Listen {
    /// Be a node of the DHT, too, and join through this one: `dht find --peer` finds the listener by its id then
    #[arg(long, value_name = "PEER@ADDR", value_parser = parse_node)]
    pub(crate) bootstrap: Vec<Target>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Ping {
    /// Whom, as `listen` prints it
    #[arg(value_name = "PEER@ADDR")]
    pub(crate) target: Target,
    /// Probes to send
    #[arg(short, long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// Bytes in a probe
    #[arg(short, long, default_value_t = 56, value_parser = clap::value_parser!(u16).range(4..))]
    pub(crate) size: u16,
    /// Time between probes, like 1s or 200ms
    #[arg(short, long, default_value = "1s", value_parser = duration::parse)]
    pub(crate) interval: Duration,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Bench {
    /// Time to measure, like 10s or 2m
    #[arg(long, default_value = "10s", value_parser = duration::parse_measurable)]
    pub(crate) duration: Duration,
    /// UDP payload of a packet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1472,
        value_parser = clap::value_parser!(u16).range(crate::bench::MIN_PACKET..=crate::bench::MAX_PACKET))]
    pub(crate) packet_size: u16,
    /// Measure to a `wraith-cli listen` elsewhere instead of within this machine
    #[arg(long, value_name = "PEER@ADDR")]
    pub(crate) connect: Option<Target>,
    /// Measure a reliable stream, too
    #[arg(long)]
    pub(crate) stream: bool,
    #[command(flatten)]
    pub(crate) line: device::Line,
}

#[derive(Args, Debug)]
pub(crate) struct Send {
    /// The file
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Serve this peer only
    #[arg(long, value_name = "PEER", value_parser = parse_peer)]
    pub(crate) to: Option<PeerId>,
    /// Go on after the first delivery, until Ctrl-C
    #[arg(long)]
    pub(crate) keep: bool,
    /// Serve it without the ticket, too, to everybody who knows its hash, and tell the DHT
    #[arg(long, conflicts_with = "to")]
    pub(crate) announce: bool,
    /// A node of the DHT to announce it through [default: those that a `dht node` here knows]
    #[arg(long, value_name = "PEER@ADDR", value_parser = parse_node, requires = "announce")]
    pub(crate) bootstrap: Vec<Target>,
    #[command(flatten)]
    pub(crate) discovery: discovery::Options,
    /// How files are read and written
    #[arg(long, help = files::help(), value_name = "WAY", default_value = "auto", hide_default_value = true)]
    pub(crate) files: files::Choice,
    /// UDP payload of a packet, in bytes, instead of what the path proves to carry
    #[arg(long, value_name = "BYTES", value_parser = packet_size())]
    pub(crate) packet_size: Option<u16>,
}

#[derive(Args, Debug)]
pub(crate) struct Receive {
    /// What `send` printed, or the hash of what somebody announces
    #[arg(value_name = "TICKET|HASH")]
    pub(crate) wanted: String,
    /// Folder to write to
    #[arg(short, long, value_name = "DIR", default_value = ".", conflicts_with = "stdout")]
    pub(crate) output: PathBuf,
    /// Ask there, too
    #[arg(long, value_name = "PEER@ADDR")]
    pub(crate) from: Vec<Target>,
    /// A node of the DHT to find who has it [default: without --from, those that a `dht node` here knows]
    #[arg(long, value_name = "PEER@ADDR", value_parser = parse_node)]
    pub(crate) bootstrap: Vec<Target>,
    #[command(flatten)]
    pub(crate) discovery: discovery::Options,
    /// Replace a file of that name
    #[arg(long, conflicts_with_all = ["rename", "stdout"])]
    pub(crate) overwrite: bool,
    /// Take another name, like `NAME (1)`, if there is a file of that name
    #[arg(long, conflicts_with = "stdout")]
    pub(crate) rename: bool,
    /// Write the bytes to stdout instead of a file
    #[arg(long)]
    pub(crate) stdout: bool,
    /// How long to wait for a sender that is not known yet, does not answer or was lost; 0 tries once
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    pub(crate) patience: Duration,
    /// How files are read and written
    #[arg(long, help = files::help(), value_name = "WAY", default_value = "auto", hide_default_value = true)]
    pub(crate) files: files::Choice,
    /// UDP payload of a packet, in bytes, instead of what the path proves to carry
    #[arg(long, value_name = "BYTES", value_parser = packet_size())]
    pub(crate) packet_size: Option<u16>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Seal {
    /// Who can open it
    #[arg(long, value_name = "PEER", value_parser = parse_peer)]
    pub(crate) to: PeerId,
    /// Sign it, so that the recipient can prove to others who sealed it
    #[arg(long)]
    pub(crate) sign: bool,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Open {
    /// Refuse it, before a byte is written, if it is from anybody else
    #[arg(long, value_name = "PEER", value_parser = parse_peer)]
    pub(crate) from: Option<PeerId>,
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Size of the file, like 256MiB or 1GB
    #[arg(long, default_value = "256MiB", value_parser = size::parse)]
    pub(crate) size: u64,
    /// Where to make a folder for it [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep the files
    #[arg(long)]
    pub(crate) keep: bool,
    /// How files are read and written
    #[arg(long, help = files::help(), value_name = "WAY", default_value = "auto", hide_default_value = true)]
    pub(crate) files: files::Choice,
    #[command(flatten)]
    pub(crate) line: device::Line,
    /// UDP payload of a packet, in bytes, instead of what the path proves to carry
    #[arg(long, value_name = "BYTES", value_parser = packet_size())]
    pub(crate) packet_size: Option<u16>,
}

/// Sizes that every session may be fixed to.
fn packet_size() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(i64::from(wraith_proto::MIN_DATAGRAM)..=65_507)
}

/// Reads a peer id.
pub(crate) fn parse_peer(text: &str) -> Result<PeerId, String> {
    text.parse().map_err(|error| format!("{error}: copy it again from `wraith-cli id`"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_declaration_is_consistent_and_the_help_fits_one_screen() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        // Two lines are for the options of traces, and two for those of devices.
        let mut screen = if cfg!(feature = "trace") { 32 } else { 30 };
        screen += if cfg!(feature = "af-xdp") { 2 } else { 0 };
        assert!(command.render_help().to_string().lines().count() <= screen);
        let names = [
            "keygen", "id", "listen", "ping", "bench", "send", "receive", "demo", "seal", "open", "dht",
            "drivers",
        ];
        for name in names {
            let help = command.find_subcommand_mut(name).unwrap().render_help().to_string();
            assert!(help.lines().count() <= screen, "{help}");
        }
    }

    #[test]
    fn common_options_are_accepted_before_and_after_the_command() {
        for line in [["wraith-cli", "--json", "id"], ["wraith-cli", "id", "--json"]] {
            assert!(Cli::try_parse_from(line).unwrap().common.output().json);
        }
        let [before, after] = [["--driver", "mio", "id"], ["id", "--driver", "mio"]]
            .map(|line| Cli::try_parse_from(["wraith-cli"].into_iter().chain(line)).unwrap().common.driver);
        assert_eq!((before, after), (Choice::Mio, Choice::Mio));
        let output = Cli::try_parse_from(["wraith-cli", "-q", "id", "-v"]).unwrap().common.output();
        assert_eq!(output, Output { quiet: true, ..Output::default() });
    }
}
