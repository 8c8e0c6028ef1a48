//! X25519 with secrets that the caller chooses.

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use wraith_proto::crypto::X25519Key;

/// A secret and its public key, which AWS-LC computes in any case when it takes a secret.
pub(crate) struct Key {
    /// Wiped by AWS-LC when it is freed.
    private: PrivateKey,
    public: [u8; 32],
}

impl Key {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        let private = PrivateKey::from_private_key(&X25519, secret).expect("any 32 bytes are a secret");
        let public = private.compute_public_key().expect("it was computed with the key");
        let public = public.as_ref().try_into().expect("it has 32 bytes");
        Self { private, public }
    }
}

impl X25519Key for Key {
    fn public(&self) -> [u8; 32] {
        self.public
    }

    fn agree(&self, public: &[u8; 32]) -> [u8; 32] {
        let peer = UnparsedPublicKey::new(&X25519, public);
        // AWS-LC refuses an all-zero result; the trait gives it, and callers refuse it.
        agree(&self.private, peer, (), |shared| shared.try_into().map_err(drop)).unwrap_or([0; 32])
    }
}
