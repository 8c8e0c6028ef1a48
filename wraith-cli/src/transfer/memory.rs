//! The most memory that this process has held.

/// Peak resident memory of this process in bytes; `None` where the system does not tell.
pub(super) fn peak() -> Option<u64> {
    if !cfg!(any(target_os = "linux", target_os = "android")) {
        return None;
    }
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    parse(&status)
}

/// `VmHWM` of `proc_pid_status(5)`, which counts in KiB.
fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_in_bytes() {
        assert_eq!(
            parse("Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    5120 kB\nVmRSS:\t 1 kB\n"),
            Some(5120 << 10)
        );
        assert_eq!(parse("Name:\tx\n"), None);
        assert_eq!(peak().is_some(), cfg!(any(target_os = "linux", target_os = "android")));
    }
}
