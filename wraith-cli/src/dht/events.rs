//! The lines of JSON that tell what became of a command, whichever DHT it went to.

use serde::Serialize;

#[derive(Serialize)]
#[serde(tag = "event", rename = "stored")]
pub(super) struct StoredEvent<'a> {
    pub(super) key: &'a str,
    pub(super) nodes: u32,
    pub(super) peer: Option<String>,
    pub(super) salt: Option<u64>,
    pub(super) seq: Option<u64>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "value")]
pub(super) struct ValueEvent {
    pub(super) key: String,
    pub(super) bytes: usize,
    /// Not known on the `BitTorrent` DHT.
    pub(super) hops: Option<u8>,
    pub(super) peer: Option<String>,
    pub(super) salt: Option<u64>,
    pub(super) seq: Option<u64>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "announced")]
pub(super) struct AnnouncedEvent<'a> {
    pub(super) hash: &'a str,
    /// Not known on the `BitTorrent` DHT.
    pub(super) nodes: Option<u8>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "found")]
pub(super) struct FoundEvent {
    /// On the `BitTorrent` DHT nobody says who has a content.
    pub(super) peer: Option<String>,
    pub(super) address: String,
    pub(super) target: Option<String>,
    /// Of a peer: whether it has just answered there; otherwise it says so itself, or others say so.
    pub(super) answered: bool,
}
