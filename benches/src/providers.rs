//! The crypto providers to compare.

use wraith_crypto_accel::Accel;
use wraith_proto::crypto::{CryptoProvider, RustCrypto, Suite};

/// A provider with the name that its benchmarks carry.
pub type Provider = (&'static str, &'static dyn CryptoProvider);

/// Every provider; all their suites are measured.
pub fn providers() -> Vec<Provider> {
    vec![default_provider(), ("rust", &RustCrypto)]
}

/// The provider that answers for published figures.
pub fn default_provider() -> Provider {
    ("accel", &Accel)
}

/// A suite's name inside those of benchmarks: lower-case letters and digits.
pub fn slug(suite: Suite) -> String {
    suite.name().chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_the_published_names() {
        assert_eq!(slug(Suite::XChaCha20Poly1305), "xchacha20poly1305");
        assert_eq!(slug(Suite::Aes256Gcm), "aes256gcm");
    }

    #[test]
    fn every_provider_has_a_name_of_its_own_and_both_suites() {
        let names: Vec<_> = providers().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["accel", "rust"]);
        for (name, provider) in providers() {
            for suite in [Suite::XChaCha20Poly1305, Suite::Aes256Gcm] {
                assert!(provider.suites().contains(&suite), "{name} without {suite:?}");
            }
        }
    }
}
