//! Sizes as people write them: `"16KiB"`, `"64MiB"`.
//!
//! Lives here: reading them. Stays out: bounds.

use serde_json::Value;
use waitroom_api::document::value::shown;

const UNITS: [(&str, u64); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// In bytes.
pub fn size(given: &Value) -> Result<u64, String> {
    match given {
        Value::String(text) => parse(text).ok_or_else(|| {
            format!("{} is not a size; write \"16KiB\", \"64MiB\" or \"500B\"", shown(given))
        }),
        Value::Number(number) => {
            let kib = number.as_u64().filter(|bytes| *bytes > 0 && bytes.is_multiple_of(1 << 10));
            let or = kib.map_or(String::new(), |bytes| format!(" or \"{}KiB\"", bytes >> 10));
            Err(format!("{number} has no unit; write \"{number}B\"{or}"))
        }
        _ => Err(format!("{} is not a size; write \"16KiB\"", shown(given))),
    }
}

fn parse(text: &str) -> Option<u64> {
    let (unit, factor) = UNITS.iter().find(|(unit, _)| text.ends_with(unit))?;
    let digits = text[..text.len() - unit.len()].trim_end();
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse::<u64>().ok()?.checked_mul(*factor)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_size_is_a_number_and_a_unit() {
        for (text, bytes) in
            [("16KiB", 16_384), ("64 MiB", 67_108_864), ("500B", 500), ("2kB", 2_000), ("0B", 0)]
        {
            assert_eq!(size(&json!(text)), Ok(bytes), "{text}");
        }
        for wrong in ["", "KiB", "16", "-1KiB", "+1KiB", "1.5MiB", "16 kib", "99999999999GiB"] {
            assert!(size(&json!(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(size(&json!(16)), Err("16 has no unit; write \"16B\"".into()));
        let both = "16384 has no unit; write \"16384B\" or \"16KiB\"";
        assert_eq!(size(&json!(16_384)), Err(both.into()));
    }
}
