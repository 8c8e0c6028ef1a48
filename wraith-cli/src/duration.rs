//! Durations as people write them: `60s`, `500ms`, `1.5`, `2m`.

use std::time::Duration;

/// Longest duration that is taken: a day.
const MAX: Duration = Duration::from_hours(24);

/// Reads a duration; a number without a unit counts seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("write a duration like 10s, 500ms or 2m".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "write a duration like 10s, 500ms or 2m".to_owned())?;
    let duration = Duration::try_from_secs_f64(number * scale).unwrap_or(Duration::MAX);
    if duration > MAX { Err("the longest duration is 24h".to_owned()) } else { Ok(duration) }
}

/// Reads a duration that is long enough to measure something.
pub(crate) fn parse_measurable(text: &str) -> Result<Duration, String> {
    let duration = parse(text)?;
    if duration < Duration::from_millis(100) {
        Err("the shortest duration is 100ms".to_owned())
    } else {
        Ok(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_without_one_count_seconds() {
        assert_eq!(parse("60s"), Ok(Duration::from_mins(1)));
        assert_eq!(parse("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(parse("24h"), Ok(MAX));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "-1s", "1.2.3", "10 s", "1d", "inf", "NaN", "25h", "999999999999999999999h"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(parse_measurable("99ms").is_err());
        assert_eq!(parse_measurable("100ms"), Ok(Duration::from_millis(100)));
    }
}
