//! Amounts of bytes as people write them: `256MiB`, `1GB`, `5000000`.

/// Largest amount that is taken: an exbibyte, which no content exceeds.
const MAX: u64 = 1 << 60;

const UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Reads an amount; a number without a unit counts bytes.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    const HOW: &str = "write a size like 256MiB, 1GB or 5000000";
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = unit.trim_start().to_ascii_lowercase();
    let unit = if unit == "b" { "" } else { &unit };
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(HOW)?;
    let number: u64 = number.parse().map_err(|_| HOW)?;
    let size = number.checked_mul(*scale).filter(|size| *size <= MAX);
    size.ok_or_else(|| "that is more than any file holds".to_owned())
}

/// An amount for people: `4.8 MiB`.
pub(crate) fn shown(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "bytes");
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        // What would be rounded to 1024 belongs to the next unit.
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    match unit {
        "bytes" if bytes == 1 => "1 byte".to_owned(),
        "bytes" => format!("{bytes} bytes"),
        _ => format!("{value:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("5000000"), Ok(5_000_000));
        assert_eq!(parse("256MiB"), Ok(256 << 20));
        assert_eq!(parse("3 gib"), Ok(3 << 30));
        assert_eq!(parse("1GB"), Ok(1_000_000_000));
        assert_eq!(parse("12B"), Ok(12));
        assert_eq!(parse("1048576TiB"), Ok(MAX));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MiB", "-1", "1.5GB", "1XB", "1M", "99999999999999999999", "1048577TiB"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn amounts_are_shown_in_the_largest_unit_that_fits() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (5_000_000, "4.8 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (3 << 30, "3.0 GiB"),
        ] {
            assert_eq!(shown(bytes), text);
        }
    }
}
