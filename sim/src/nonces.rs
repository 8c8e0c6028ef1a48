//! A crypto provider that watches another one for nonces that are used twice.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use wraith_proto::PeerId;
use wraith_proto::crypto::{BadTag, CryptoProvider, HeaderKey, KeyMaterial, PacketKey, Suite, X25519Key};

/// Notes every pair of key and packet number that is sealed with.
#[derive(Debug)]
pub struct NonceRecorder {
    inner: &'static dyn CryptoProvider,
    record: Arc<Mutex<Record>>,
}

#[derive(Debug, Default)]
struct Record {
    numbers: HashMap<[u8; 32], HashSet<u64>>,
    sealed: u64,
    repeated: u64,
}

impl NonceRecorder {
    /// Watches `inner`. A configuration borrows its provider for ever, so that this one is never freed.
    pub fn leak(inner: &'static dyn CryptoProvider) -> &'static Self {
        Box::leak(Box::new(Self { inner, record: Arc::default() }))
    }

    /// Packets sealed.
    pub fn sealed(&self) -> u64 {
        self.read(|record| record.sealed)
    }

    /// Packets sealed under a number that had been used with their key before.
    pub fn repeated(&self) -> u64 {
        self.read(|record| record.repeated)
    }

    /// Keys that sealed.
    pub fn keys(&self) -> usize {
        self.read(|record| record.numbers.len())
    }

    fn read<T>(&self, read: impl FnOnce(&Record) -> T) -> T {
        read(&self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CryptoProvider for NonceRecorder {
    fn suites(&self) -> &[Suite] {
        self.inner.suites()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        let inner = self.inner.key(suite, material);
        Box::new(RecordedKey { inner, key: material.key, record: Arc::clone(&self.record) })
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        self.inner.header_key(suite, key)
    }

    fn noise_key(&self, key: &[u8; 32]) -> Box<dyn PacketKey> {
        self.inner.noise_key(key)
    }

    fn static_public(&self, peer: &PeerId) -> [u8; 32] {
        self.inner.static_public(peer)
    }

    fn is_peer(&self, public: &[u8; 32], form: &[u8; 32]) -> bool {
        self.inner.is_peer(public, form)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        self.inner.x25519_key(secret)
    }
}

struct RecordedKey {
    inner: Box<dyn PacketKey>,
    key: [u8; 32],
    record: Arc<Mutex<Record>>,
}

impl PacketKey for RecordedKey {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.sealed += 1;
        let fresh = record.numbers.entry(self.key).or_default().insert(packet_number);
        record.repeated += u64::from(!fresh);
        drop(record);
        self.inner.seal_in_place(packet_number, header, packet);
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        self.inner.open_in_place(packet_number, header, packet)
    }
}

#[cfg(test)]
mod tests {
    use wraith_proto::crypto::TAG_LEN;

    use super::*;
    use crate::Transparent;

    #[test]
    fn a_number_used_twice_with_one_key_is_noticed() {
        let recorder = NonceRecorder::leak(Transparent::CHECKED);
        let key =
            |byte| recorder.key(Suite::XChaCha20Poly1305, &KeyMaterial { key: [byte; 32], prefix: [0; 16] });
        let seal = |key: &dyn PacketKey, number| key.seal_in_place(number, b"", &mut [0; TAG_LEN]);
        seal(&*key(1), 5);
        seal(&*key(1), 6);
        seal(&*key(2), 5);
        assert_eq!((recorder.sealed(), recorder.repeated(), recorder.keys()), (3, 0, 2));
        seal(&*key(1), 6);
        assert_eq!((recorder.sealed(), recorder.repeated(), recorder.keys()), (4, 1, 2));
    }
}
