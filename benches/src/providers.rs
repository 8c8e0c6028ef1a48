//! The crypto providers to compare.

use wraith_proto::crypto::{CryptoProvider, RustCrypto, Suite};

/// A provider with the name that its benchmarks carry.
pub type Provider = (&'static str, &'static dyn CryptoProvider);

/// Every provider; all their suites are measured.
pub fn providers() -> Vec<Provider> {
    vec![("rust", &RustCrypto)]
}

/// The provider that the tool takes.
pub fn default_provider() -> Provider {
    ("rust", &RustCrypto)
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
    fn the_tools_provider_is_among_those_measured() {
        let names: Vec<_> = providers().iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&default_provider().0));
    }
}
