//! A sender, a router and a receiver, and a file between them.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use serde_json::Value;

use crate::host::Host;
use crate::support::{Done, PATIENCE, Running, program};
use crate::transfer::{Scene, content, done};

/// What the line between sender and router takes, so that a change meets a transfer in its middle.
const RATE: &str = "30mbit";

/// ```text
/// sender  out ──── west  router  east ──── out  receiver
/// 10.1.0.2/24      .1            .1        10.2.0.2/24
/// ```
pub(crate) struct Network {
    pub(crate) sender: Host,
    pub(crate) router: Host,
    pub(crate) receiver: Host,
}

impl Network {
    /// The network, or `None` if this user or machine cannot have it, which is said aloud and a failure where
    /// `WRAITH_CONFORMANCE_STRICT` is 1.
    pub(crate) fn new() -> Option<Self> {
        match Self::make() {
            Ok(network) => Some(network),
            Err(error) => {
                wraith_conformance::not_tested(format_args!(
                    "networks of its own take root, nft, and ip and tc of iproute2: {error}"
                ));
                None
            }
        }
    }

    fn make() -> io::Result<Self> {
        for tool in ["nft", "ip", "tc"] {
            let version = Command::new(tool).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
            version.map_err(|error| io::Error::new(error.kind(), format!("{tool}: {error}")))?;
        }
        let network = Self {
            sender: Host::new("sender")?,
            router: Host::new("router")?,
            receiver: Host::new("receiver")?,
        };
        let router = network.router.id();
        for (host, here, there) in
            [(&network.sender, "10.1.0", "west"), (&network.receiver, "10.2.0", "east")]
        {
            // Without segmentation offload on the line each packet meets the router by itself.
            host.sh(&format!(
                "ip link add out type veth peer name {there} netns {router}
                 ip link set out gso_max_segs 1 up
                 ip addr add {here}.2/24 dev out"
            ));
            network
                .router
                .sh(&format!("ip link set {there} gso_max_segs 1 up\nip addr add {here}.1/24 dev {there}"));
            host.sh(&format!("ip route add default via {here}.1"));
        }
        network.sender.sh(&format!("tc qdisc add dev out root tbf rate {RATE} burst 16k limit 200k"));
        network.router.set("net/ipv4/ip_forward", "1");
        Ok(network)
    }

    /// Sends a file of `len` bytes, does `change` when a part has arrived, and wants all of it verified within `limit` of
    /// that.
    pub(crate) fn transfer(
        &self,
        name: &str,
        len: usize,
        limit: Duration,
        change: impl FnOnce(&Self, &Transfer),
    ) -> Arrived {
        let bytes = content(len);
        let scene = Scene::new(name, &bytes);
        let transfer = self.begin(&scene);
        wait_for_some(&transfer.receiver);
        let began = Instant::now();
        change(self, &transfer);
        let end = transfer.finish(PATIENCE).verified(&scene, &bytes);
        let took = began.elapsed();
        assert!(took < limit, "{took:?}");
        println!("{name}: {len} bytes, the rest in {took:?}");
        Arrived { searches: end.stderr.matches("looking for it").count() }
    }

    /// Sends a file of `len` bytes, dial and all, within `limit`; returns how often all addresses were silent at first.
    pub(crate) fn fetch(&self, name: &str, len: usize, limit: Duration) -> usize {
        let bytes = content(len);
        let scene = Scene::new(name, &bytes);
        let end = self.begin(&scene).finish(limit).verified(&scene, &bytes);
        end.stderr.matches("no answer from").count()
    }

    fn begin(&self, scene: &Scene) -> Transfer {
        let mut command = program(["send", "--json", "-q", "--driver", "mio"]);
        command.arg(&scene.source);
        let sender = self.sender.start(command);
        let ticket = sender.event("ticket")["ticket"].as_str().unwrap().to_owned();
        let command = scene.receive(&ticket, &["--driver", "mio"]);
        let receiver = self.receiver.start(program(command.get_args().filter(|arg| *arg != "-q")));
        Transfer { sender, receiver }
    }
}

/// What a transfer was like in the end.
pub(crate) struct Arrived {
    /// How often the receiver gave its session up and looked for the sender.
    pub(crate) searches: usize,
}

/// A transfer in its middle.
pub(crate) struct Transfer {
    pub(crate) sender: Running,
    pub(crate) receiver: Running,
}

impl Transfer {
    /// Waits for both ends, for the receiver as long as `limit`.
    fn finish(self, limit: Duration) -> Finished {
        let receiver = self.receiver.end(limit, false);
        assert_eq!(receiver.code, Some(0), "{} {:?}", receiver.stderr, receiver.stdout);
        let sender = self.sender.finish();
        assert_eq!(sender.code, Some(0), "{} {:?}", sender.stderr, sender.stdout);
        Finished { receiver, confirmed: sender.json().pop().unwrap() }
    }
}

/// How the receiver ended, and what the sender says of the delivery.
struct Finished {
    receiver: Done,
    confirmed: Value,
}

impl Finished {
    /// Asserts that these bytes arrived, and that both ends know.
    fn verified(self, scene: &Scene, bytes: &[u8]) -> Done {
        let hash = blake3::hash(bytes).to_hex().to_string();
        let received = done(&self.receiver);
        assert_eq!((&received["hash"], &received["verified"]), (&hash.as_str().into(), &true.into()));
        assert!(fs::read(scene.received()).unwrap() == bytes, "the file is another");
        assert_eq!(self.confirmed["hash"], hash.as_str());
        self.receiver
    }
}

/// Waits until some of the file has arrived, and not all.
fn wait_for_some(receiver: &Running) {
    loop {
        let event = receiver.event("progress");
        let (bytes, total) = (event["bytes"].as_u64().unwrap(), event["total"].as_u64());
        if bytes > 0 {
            assert!(
                total.is_none_or(|total| bytes < total),
                "there is no middle to change anything in: {event}"
            );
            return;
        }
    }
}

/// How often a case repeats its change in one transfer, in the short and in the full form.
pub(crate) fn repeats(short: u32, full: u32) -> u32 {
    if env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full") { full } else { short }
}
