//! Lists of nodes in answers.

use core::net::IpAddr;

use wraith_proto::wire::{Full, Malformed, Reader, Writer};

use crate::node::{Address, Node, NodeRef};

/// Nodes that an answer lists at most.
pub const MAX_NODES: usize = 20;

/// Bytes of a node at most.
pub(crate) const MAX_NODE: usize = 1 + 16 + 2 + 32;

/// A list of nodes whose form was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nodes<'a> {
    bytes: &'a [u8],
    count: u8,
}

impl<'a> Nodes<'a> {
    /// How many.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The nodes, with keys and addresses as they stand there.
    pub fn iter(&self) -> impl Iterator<Item = NodeRef> + use<'a> {
        self.compact().map(NodeRef::from)
    }

    pub(crate) fn compact(&self) -> impl Iterator<Item = Node> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        // The form was checked.
        (0..self.count).map_while(move |_| read_node(&mut reader).ok())
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let count = reader.u8()?;
        if usize::from(count) > MAX_NODES {
            return Err(Malformed);
        }
        let start = *reader;
        for _ in 0..count {
            read_node(reader)?;
        }
        let len = reader.position() - start.position();
        Ok(Self { bytes: &start.rest()[..len], count })
    }
}

/// Nodes without their number, of which there are `count`.
pub(crate) fn nodes(bytes: &[u8], count: u8) -> impl Iterator<Item = Node> {
    Nodes { bytes, count }.compact()
}

/// Writes as many of `nodes` as fit, [`MAX_NODES`] at most, behind their number.
pub(crate) fn write_nodes(w: &mut Writer<'_>, nodes: impl Iterator<Item = Node>) -> Result<(), Full> {
    let mut list = [0; MAX_NODES * MAX_NODE];
    let room = w.remaining().saturating_sub(1).min(list.len());
    let mut entries = Writer::new(&mut list[..room]);
    let mut count = 0;
    for node in nodes.take(MAX_NODES) {
        if entries.remaining() < node_len(&node) {
            break;
        }
        write_node(&mut entries, &node)?;
        count += 1;
    }
    w.u8(count)?;
    w.bytes(entries.written())
}

pub(crate) fn write_node(w: &mut Writer<'_>, node: &Node) -> Result<(), Full> {
    match node.address.ip() {
        IpAddr::V4(ip) => {
            w.u8(4)?;
            w.array(&ip.octets())?;
        }
        IpAddr::V6(ip) => {
            w.u8(6)?;
            w.array(&ip.octets())?;
        }
    }
    w.array(&node.address.port())?;
    w.array(&node.key)
}

fn node_len(node: &Node) -> usize {
    if node.address.ip().is_ipv4() { MAX_NODE - 12 } else { MAX_NODE }
}

fn read_node(reader: &mut Reader<'_>) -> Result<Node, Malformed> {
    let address = match reader.u8()? {
        4 => Address::v4(*reader.array()?, *reader.array()?),
        6 => Address::v6(*reader.array()?, *reader.array()?),
        _ => return Err(Malformed),
    };
    Ok(Node { key: *reader.array()?, address })
}
