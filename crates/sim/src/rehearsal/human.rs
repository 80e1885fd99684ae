//! Numbers and durations as people write and read them: "20M", "5m", "1h30m", "35%".
//! Lives here: both directions, and what a wrong one is told. Stays out: which flag it was.

use super::plan::Patience;

/// Reads "20M", "2.5k", "1_000", "1,000".
pub fn parse_number(text: &str) -> Result<u64, String> {
    let plain: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let (digits, factor) = match plain.chars().last() {
        Some('k' | 'K') => (&plain[..plain.len() - 1], 1e3),
        Some('m' | 'M') => (&plain[..plain.len() - 1], 1e6),
        Some('g' | 'G' | 'b' | 'B') => (&plain[..plain.len() - 1], 1e9),
        _ => (&plain[..], 1.0),
    };
    if factor == 1.0
        && let Ok(whole) = digits.parse()
    {
        return Ok(whole);
    }
    match digits.parse::<f64>() {
        Ok(value) if digits_only(digits) && (value * factor).fract() == 0.0 => {
            Ok((value * factor) as u64)
        }
        _ => Err(format!("\"{text}\" is not a whole number; write 20000000, 20M or 2.5k")),
    }
}

/// Reads "90s", "5m", "1h30m", "200ms", "2d"; the answer is in milliseconds.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is not a duration; write 90s, 5m, 1h30m or 200ms");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    if !rest.contains(|c: char| c.is_ascii_alphabetic()) {
        return Err(format!("\"{text}\" has no unit; write \"{rest}s\" or \"{rest}m\""));
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let factor = match unit {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" | "min" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return Err(wrong()),
        };
        if !digits_only(number) {
            return Err(wrong());
        }
        total += number.parse::<f64>().map_err(|_| wrong())? * factor;
        rest = tail;
    }
    if total < u64::MAX as f64 { Ok(total.round() as u64) } else { Err(wrong()) }
}

/// Reads "35%" or "0.35"; the answer is a share.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let wrong = || format!("\"{text}\" is not a share; write 35% or 0.35");
    let trimmed = text.trim();
    let (digits, divisor) = match trimmed.strip_suffix('%') {
        Some(digits) => (digits.trim(), 100.0),
        None => (trimmed, 1.0),
    };
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    if !digits_only(digits) {
        return Err(wrong());
    }
    let share = value / divisor;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(format!("\"{text}\" is out of bounds; a share lies between 0% and 100%"))
    }
}

/// Reads "none", "20m" (lognormal), "20m,exponential", "20m,weibull=0.7", "20m,lognormal=1.2".
pub fn parse_patience(text: &str) -> Result<Patience, String> {
    if matches!(text.trim(), "none" | "endless") {
        return Ok(Patience::Endless);
    }
    let (median, kind) = text.split_once(',').unwrap_or((text, "lognormal"));
    let median_ms = parse_duration(median)?;
    if median_ms == 0 {
        return Err(format!("\"{text}\": nobody would wait at all; write 1s or more, or none"));
    }
    let (kind, parameter) = match kind.trim().split_once('=') {
        Some((kind, parameter)) => {
            let value = parameter.parse::<f64>();
            (kind, Some(value.map_err(|_| format!("\"{parameter}\" is not a number"))?))
        }
        None => (kind.trim(), None),
    };
    match (kind, parameter) {
        ("exponential", None) => Ok(Patience::Exponential { median_ms }),
        ("weibull", shape) => Ok(Patience::Weibull { median_ms, shape: shape.unwrap_or(0.7) }),
        ("lognormal", spread) => {
            Ok(Patience::Lognormal { median_ms, spread: spread.unwrap_or(1.0) })
        }
        _ => Err(format!(
            "\"{kind}\" is not a kind of patience; write exponential, weibull=0.7 or lognormal=1.0"
        )),
    }
}

fn digits_only(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// "1,234,567".
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// "20 M", "12.3 k": for axes and headlines.
pub fn short(n: f64) -> String {
    let (value, unit) = match n.abs() {
        a if a >= 1e9 => (n / 1e9, " G"),
        a if a >= 1e6 => (n / 1e6, " M"),
        a if a >= 1e3 => (n / 1e3, " k"),
        _ => (n, ""),
    };
    let digits = if value.abs() >= 100.0 || value.fract().abs() < 0.05 { 0 } else { 1 };
    format!("{value:.digits$}{unit}")
}

/// "850 ms", "12.4 s", "7 min 05 s", "2 h 03 min".
pub fn duration(ms: u64) -> String {
    let s = ms / 1_000;
    match ms {
        0 => "0 s".into(),
        1..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", s, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3_600, s % 3_600 / 60),
    }
}

/// "81.3 %".
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

pub fn patience(patience: Patience) -> String {
    match patience {
        Patience::Endless => "endless".into(),
        Patience::Exponential { median_ms } => {
            format!("half give up within {} (exponential)", duration(median_ms))
        }
        Patience::Weibull { median_ms, shape } => {
            format!("half give up within {} (Weibull, shape {shape})", duration(median_ms))
        }
        Patience::Lognormal { median_ms, spread } => {
            format!("half give up within {} (lognormal, spread {spread})", duration(median_ms))
        }
    }
}
