//! What every figure depends on.

use std::fmt;

use sysinfo::{CpuRefreshKind, RefreshKind, System};

/// The machine and the compiler, as they stand beside each result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Cores that the system sees.
    pub cores: usize,
    /// Instructions that ciphers and hashes look for at run time.
    pub features: String,
    /// Operating system and kernel.
    pub kernel: String,
    /// The compiler that built this.
    pub rustc: &'static str,
}

impl Machine {
    /// This machine.
    pub fn detect() -> Self {
        let system = System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()));
        let cpus = system.as_ref().map_or(&[][..], System::cpus);
        Self {
            cpu: cpus.first().map_or("unknown processor", |cpu| cpu.brand().trim()).to_owned(),
            cores: cpus.len(),
            features: features(),
            kernel: System::kernel_long_version().unwrap_or_else(|_| "unknown kernel".to_owned()),
            rustc: env!("WRAITH_RUSTC"),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, features, kernel, rustc } = self;
        let arch = std::env::consts::ARCH;
        write!(f, "{cpu}, {cores} cores, {arch} with {features}; {kernel}; {rustc}")
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> String {
    let all = [
        ("aes", is_x86_feature_detected!("aes")),
        ("vaes", is_x86_feature_detected!("vaes")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
    ];
    listed(&all)
}

#[cfg(target_arch = "aarch64")]
fn features() -> String {
    listed(&[
        ("aes", std::arch::is_aarch64_feature_detected!("aes")),
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
    ])
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> String {
    listed(&[])
}

fn listed(all: &[(&str, bool)]) -> String {
    let found: Vec<_> = all.iter().filter(|(_, found)| *found).map(|(name, _)| *name).collect();
    if found.is_empty() { "no vector instructions that matter".to_owned() } else { found.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_what_it_is_in_one_line() {
        let machine = Machine::detect();
        assert!(machine.cores > 0);
        assert!(machine.rustc.starts_with("rustc "), "{}", machine.rustc);
        let text = machine.to_string();
        assert_eq!(text.lines().count(), 1);
        for part in [&machine.cpu, &machine.kernel, &machine.features] {
            assert!(!part.is_empty() && text.contains(part), "{text}");
        }
    }

    #[test]
    fn features_that_are_missing_are_not_listed() {
        assert_eq!(listed(&[("aes", true), ("vaes", false), ("avx2", true)]), "aes avx2");
        assert_eq!(listed(&[("aes", false)]), "no vector instructions that matter");
    }
}
