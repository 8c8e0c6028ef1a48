//! Numbers for people: three digits and a unit.

/// A time in nanoseconds.
pub(crate) fn time(nanos: f64) -> String {
    let (value, unit) = match nanos.abs() {
        ..1e3 => (nanos, "ns"),
        1e3..1e6 => (nanos / 1e3, "µs"),
        1e6..1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Bytes in a time, in GB/s.
pub(crate) fn rate(bytes: usize, nanos: f64) -> String {
    format!("{} GB/s", digits(bytes as f64 / nanos))
}

/// Three digits that count.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        ..0.995 => format!("{value:.3}"),
        0.995..9.995 => format!("{value:.2}"),
        9.995..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
