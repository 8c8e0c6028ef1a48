//! The protocol cases against `listen` and `ping` as processes, started anew for each.

use wraith_conformance::Verdict;
use wraith_conformance::protocol::{Live, Side, Subject, Target, Variant};
use wraith_proto::PeerId;

use crate::support::Listener;

const PROTOCOL: &[u8] = b"wraith-ping/1";

/// `listen` as the end that answers, `ping` as the end that dials.
struct Processes {
    target: Live,
    _listener: Listener,
}

impl Processes {
    fn start() -> Self {
        let listener = Listener::start("127.0.0.1");
        let peer: PeerId = listener.peer.parse().unwrap();
        let addr = format!("127.0.0.1:{}", listener.port).parse().unwrap();
        let dials = [env!("CARGO_BIN_EXE_wraith-cli"), "ping", "-q", "-c", "1000", "{}"].map(str::to_owned);
        let target = Live {
            answers: Some((*peer.as_bytes(), addr)),
            dials: Some(dials.into()),
            protocol: PROTOCOL.to_vec(),
        };
        Self { target, _listener: listener }
    }
}

impl Target for Processes {
    fn name(&self) -> String {
        "wraith-cli".to_owned()
    }

    fn subject(&self, side: Side, variant: Variant, seed: u64) -> Result<Box<dyn Subject>, Verdict> {
        self.target.subject(side, variant, seed)
    }

    fn protocol(&self) -> Vec<u8> {
        self.target.protocol()
    }
}

wraith_conformance::protocol_suite!(Processes::start());
