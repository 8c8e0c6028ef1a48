//! Packet protection in pure Rust: both suites, and which is faster here.

mod chacha;
mod either;
mod gcm;

pub(super) use chacha::{ChaChaHeaderKey, ChaChaKey};
pub(super) use either::{SuiteHeaderKey, SuiteKey};
pub(super) use gcm::{AesGcmKey, AesHeaderKey};

use super::{BadTag, HeaderKey, KeyMaterial, PacketKey, Suite, TAG_LEN};

/// Both suites, the faster one on this processor first.
///
/// AES-256-GCM in software takes some seven times as long as XChaCha20-Poly1305, with instructions for both of its
/// halves a quarter (docs/decisions/010).
pub(super) fn suites_by_speed() -> &'static [Suite] {
    if has_instructions_for_gcm() {
        &[Suite::Aes256Gcm, Suite::XChaCha20Poly1305]
    } else {
        &[Suite::XChaCha20Poly1305, Suite::Aes256Gcm]
    }
}

/// Instructions for AES and for carry-less multiplication; the latter are used with AVX only.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_instructions_for_gcm() -> bool {
    cpufeatures::new!(gcm, "aes", "pclmulqdq", "avx");
    gcm::get()
}

/// Instructions for AES, which come with those for carry-less multiplication.
#[cfg(target_arch = "aarch64")]
fn has_instructions_for_gcm() -> bool {
    cpufeatures::new!(gcm, "aes");
    gcm::get()
}

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86", target_arch = "x86_64")))]
fn has_instructions_for_gcm() -> bool {
    false
}

#[cfg(test)]
mod tests;
