//! A provider that makes X25519 cost nothing, for what else there is in a handshake.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use wraith_proto::PeerId;
use wraith_proto::crypto::{CryptoProvider, HeaderKey, KeyMaterial, PacketKey, Suite, X25519Key};

/// Remembers results of X25519, so that an equal handshake costs none. The rest is the provider's.
#[derive(Debug)]
pub(crate) struct Remembering {
    provider: &'static dyn CryptoProvider,
    memory: Memory,
}

/// What was computed, shared by a provider and its keys.
#[derive(Clone, Default, Debug)]
struct Memory(Arc<Mutex<Known>>);

#[derive(Default, Debug)]
struct Known {
    results: HashMap<Call, [u8; 32]>,
    /// Every call, those with a known result too.
    calls: Vec<Call>,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Call {
    /// The secret.
    pub(crate) secret: [u8; 32],
    /// The public key to agree with; `None` makes the secret's own.
    pub(crate) peer: Option<[u8; 32]>,
}

impl Remembering {
    /// Nothing is known yet.
    pub(crate) fn new(provider: &'static dyn CryptoProvider) -> Self {
        Self { provider, memory: Memory::default() }
    }

    /// The calls since this was asked last, in order.
    pub(crate) fn take_calls(&self) -> Vec<Call> {
        mem::take(&mut self.memory.lock().calls)
    }

    /// Number of results that are known.
    pub(crate) fn known(&self) -> usize {
        self.memory.lock().results.len()
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("nobody panicked")
    }

    fn recall(&self, call: Call, compute: impl FnOnce() -> [u8; 32]) -> [u8; 32] {
        let mut known = self.lock();
        known.calls.push(call);
        *known.results.entry(call).or_insert_with(compute)
    }
}

impl CryptoProvider for Remembering {
    fn suites(&self) -> &[Suite] {
        self.provider.suites()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        self.provider.key(suite, material)
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        self.provider.header_key(suite, key)
    }

    fn noise_key(&self, key: &[u8; 32]) -> Box<dyn PacketKey> {
        self.provider.noise_key(key)
    }

    fn static_public(&self, peer: &PeerId) -> [u8; 32] {
        self.provider.static_public(peer)
    }

    fn is_peer(&self, public: &[u8; 32], form: &[u8; 32]) -> bool {
        self.provider.is_peer(public, form)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        let (provider, secret, memory) = (self.provider, *secret, self.memory.clone());
        let public = memory.recall(Call { secret, peer: None }, || provider.x25519_base(&secret));
        Box::new(RememberingKey { provider, secret, public, memory })
    }
}

struct RememberingKey {
    provider: &'static dyn CryptoProvider,
    secret: [u8; 32],
    public: [u8; 32],
    memory: Memory,
}

impl X25519Key for RememberingKey {
    fn public(&self) -> [u8; 32] {
        self.public
    }

    fn agree(&self, public: &[u8; 32]) -> [u8; 32] {
        let call = Call { secret: self.secret, peer: Some(*public) };
        self.memory.recall(call, || self.provider.x25519(&self.secret, public))
    }
}
