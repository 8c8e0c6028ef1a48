//! Ciphers: the library behind them, and `--suite`.

use std::fmt;
use std::str::FromStr;

use wraith_proto::crypto::{CryptoProvider, Suite};

/// Where this build takes ciphers and X25519 from.
#[cfg(feature = "accel")]
pub(crate) const PROVIDER: &dyn CryptoProvider = &wraith_crypto_accel::Accel;
/// Its name in the JSON field `crypto`.
#[cfg(feature = "accel")]
pub(crate) const LIBRARY: &str = "aws-lc";

/// Where this build takes ciphers and X25519 from.
#[cfg(not(feature = "accel"))]
pub(crate) const PROVIDER: &dyn CryptoProvider = &wraith_proto::crypto::RustCrypto;
/// Its name in the JSON field `crypto`.
#[cfg(not(feature = "accel"))]
pub(crate) const LIBRARY: &str = "pure-rust";

/// What `--suite` takes, and what that offers to peers; nothing means all that the library has.
const OFFERS: [(&str, &[Suite]); 3] = [
    ("auto", &[]),
    ("aes-256-gcm", &[Suite::Aes256Gcm]),
    ("xchacha20-poly1305", &[Suite::XChaCha20Poly1305]),
];

/// The suites that this end offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    name: &'static str,
    /// Best first, as `Transport::suites` takes them.
    pub(crate) suites: &'static [Suite],
}

impl Offer {
    /// All, the faster one on this processor first.
    pub(crate) const ALL: Self = Self { name: OFFERS[0].0, suites: OFFERS[0].1 };
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Offer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = OFFERS.into_iter().find(|(name, _)| *name == text);
        found
            .map(|(name, suites)| Self { name, suites })
            .ok_or_else(|| format!("the suites are {}", OFFERS.map(|(name, _)| name).join(", ")))
    }
}

/// A suite and the library that computes it, for people.
pub(crate) fn described(suite: &str) -> String {
    format!("{suite} ({LIBRARY})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_every_suite_that_can_be_asked_for_under_its_usual_name() {
        for (name, suites) in OFFERS {
            let offer: Offer = name.parse().unwrap();
            assert_eq!((offer.to_string(), offer.suites), (name.to_owned(), suites));
            assert!(suites.iter().all(|suite| PROVIDER.suites().contains(suite)));
            assert!(suites.iter().all(|suite| suite.name().to_lowercase() == name));
        }
        assert_eq!("auto".parse(), Ok(Offer::ALL));
        assert_eq!(
            "aes".parse::<Offer>(),
            Err("the suites are auto, aes-256-gcm, xchacha20-poly1305".to_owned())
        );
    }
}
