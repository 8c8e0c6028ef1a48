//! A network of the crate's nodes on loopback in which everybody knows everybody, and nobody who does not answer.
//!
//! Those of `mainline::Testnet` have no node to begin with, and therefore take whoever looks for itself for a node. Whoever
//! asks is told of all clients then, and waits two seconds for each answer that does not come.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use mainline::Dht;
use mainline::async_dht::AsyncDht;

const NODES: usize = 10;

/// Nodes that run until the value goes away.
pub(crate) struct Net {
    /// Their addresses.
    pub(crate) bootstrap: Vec<String>,
    _nodes: Vec<AsyncDht>,
}

impl Net {
    pub(crate) fn new() -> Self {
        // Somebody else may take a port before its node does.
        let nodes = (0..10).find_map(|_| nodes().ok()).expect("ports on loopback");
        let until = Instant::now() + Duration::from_mins(1);
        // Who was there first asked in vain.
        while nodes.iter().any(|(_, node)| block_on(node.to_bootstrap()).len() < NODES - 1) {
            assert!(Instant::now() < until, "nodes that do not find each other");
            thread::scope(|scope| {
                for (_, node) in &nodes {
                    scope.spawn(|| block_on(node.bootstrapped()));
                }
            });
        }
        let (addresses, nodes): (Vec<_>, Vec<_>) = nodes.into_iter().unzip();
        Self { bootstrap: addresses.iter().map(ToString::to_string).collect(), _nodes: nodes }
    }
}

/// Nodes that are told of each other's addresses.
fn nodes() -> std::io::Result<Vec<(SocketAddrV4, AsyncDht)>> {
    let sockets: Vec<_> = (0..NODES).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let ports: Vec<_> =
        sockets.iter().map(|socket| Ok(socket.local_addr()?.port())).collect::<std::io::Result<_>>()?;
    drop(sockets);
    let addresses: Vec<_> = ports.iter().map(|&port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).collect();
    let node = |&own: &SocketAddrV4| {
        let others: Vec<_> = addresses.iter().copied().filter(|&other| other != own).collect();
        let mut node = Dht::builder();
        node.server_mode().bootstrap(&others).bind_address(*own.ip()).port(own.port());
        Ok((own, node.request_timeout(Duration::from_millis(200)).build()?.as_async()))
    };
    addresses.iter().map(node).collect()
}
