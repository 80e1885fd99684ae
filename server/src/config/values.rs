//! Values that only a server's configuration has: addresses, files, networks, bounds.
//!
//! Lives here: reading one value. Stays out: spans, paces and words, which room documents have
//! too (`waitroom_api::document::value`).

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use waitroom_api::document::value::{self, shown, span_text};
use waitroom_core::Millis;
use waitroom_core::settings::Rate;

pub fn address(given: &Value) -> Result<SocketAddr, String> {
    let read = given.as_str().and_then(|text| text.parse().ok());
    read.ok_or_else(|| {
        let hint = "write \"127.0.0.1:8080\" or \"[::]:8080\"";
        format!("{} is not an address with a port; {hint}", shown(given))
    })
}

pub fn file(given: &Value) -> Result<PathBuf, String> {
    match given.as_str() {
        Some("") | None => Err(format!("{} is not a path", shown(given))),
        Some(text) => Ok(PathBuf::from(text)),
    }
}

/// An address as links begin with it; without the slash at its end.
pub fn url(given: &Value) -> Result<String, String> {
    let wrong = || format!("{} is not an address; write \"https://queue.example\"", shown(given));
    let text = given.as_str().ok_or_else(wrong)?.trim_end_matches('/');
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let fits = |host: &str| {
        !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '?' | '#'))
    };
    host.filter(|host| fits(host)).ok_or_else(wrong)?;
    Ok(text.to_owned())
}

/// Where a Redis listens. A password would be read by whoever reads the file.
pub fn redis_url(given: &Value) -> Result<String, String> {
    let shape = "write \"redis://10.0.0.5:6379\"";
    let wrong = || format!("{} is not the address of a Redis; {shape}", shown(given));
    let text = given.as_str().ok_or_else(wrong)?.trim_end_matches('/');
    let host = text.strip_prefix("redis://").or_else(|| text.strip_prefix("rediss://"));
    let host = host.ok_or_else(wrong)?;
    if host.contains('@') {
        let hint = "name the user in redis.user and a file in redis.password_file";
        return Err(format!("an address with a password in it; {hint}"));
    }
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "6379"));
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && c != '/');
    if fits && port.parse::<u16>().is_ok() { Ok(text.to_owned()) } else { Err(wrong()) }
}

/// A name in letters that every program prints alike.
pub fn plain(given: &Value) -> Result<String, String> {
    let fits = |text: &&str| {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        (1..=64).contains(&text.len()) && text.chars().all(letter)
    };
    given.as_str().filter(fits).map(str::to_owned).ok_or_else(|| {
        let allowed = "1 to 64 letters, digits and - _ . :";
        format!("{} is not a name; allowed: {allowed}", shown(given))
    })
}

/// Where a collector of traces listens. Plain HTTP: it stands on this machine or beside it.
pub fn collector(given: &Value) -> Result<String, String> {
    let text = url(given).ok().filter(|text| text.starts_with("http://"));
    let fits = |text: &String| text.parse::<hyper::Uri>().is_ok_and(|it| it.host().is_some());
    text.filter(fits).ok_or_else(|| {
        let hint = "write \"http://127.0.0.1:4318\"; a collector beside the server takes it on";
        format!("{} is not the plain HTTP address of a collector; {hint}", shown(given))
    })
}

/// A share of something: "1%", "0.5%", "100%".
pub fn share(given: &Value) -> Result<f64, String> {
    let percent = given.as_str().and_then(|text| text.strip_suffix('%')?.parse::<f64>().ok());
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .map(|it| it / 100.0)
        .ok_or_else(|| format!("{} is not a share; write \"1%\", at most \"100%\"", shown(given)))
}

/// A span within bounds.
pub fn span(within: RangeInclusive<Duration>) -> impl Fn(&Value) -> Result<Duration, String> {
    move |given| {
        let Millis(ms) = value::span(given)?;
        let span = Duration::from_millis(ms);
        if within.contains(&span) {
            return Ok(span);
        }
        let text = |it: &Duration| span_text(Millis(it.as_millis() as u64));
        let (min, max) = (text(within.start()), text(within.end()));
        Err(format!("{} does not fit; allowed: {min} to {max}", shown(given)))
    }
}

/// A whole number within bounds.
pub fn count(within: RangeInclusive<u64>) -> impl Fn(&Value) -> Result<u64, String> {
    move |given| in_bounds(given, value::count(given)?, &within, "")
}

/// A size in bytes within bounds.
pub fn size(within: RangeInclusive<u64>) -> impl Fn(&Value) -> Result<u64, String> {
    move |given| in_bounds(given, super::size::size(given)?, &within, " bytes")
}

fn in_bounds(
    given: &Value,
    read: u64,
    within: &RangeInclusive<u64>,
    unit: &str,
) -> Result<u64, String> {
    if within.contains(&read) {
        return Ok(read);
    }
    let (min, max) = (within.start(), within.end());
    Err(format!("{} does not fit; allowed: {min} to {max}{unit}", shown(given)))
}

/// How often something may be asked. `"none"` is without limit; never at all is a mistake.
pub fn pace(given: &Value) -> Result<Option<Rate>, String> {
    let rate = value::or_none(given, value::rate)?;
    match rate {
        Some(Rate { count: 0, .. }) => {
            Err(format!("{} would refuse everybody; \"none\" is without limit", shown(given)))
        }
        Some(Rate { per: Millis(0), .. }) => Err(format!("{} has no time in it", shown(given))),
        rate => Ok(rate),
    }
}

/// A list of things, each read alike.
pub fn list<T>(
    read: impl Fn(&Value) -> Result<T, String>,
) -> impl Fn(&Value) -> Result<Vec<T>, String> {
    move |given| {
        let items = given.as_array();
        let items =
            items.ok_or_else(|| format!("{} is not a list; write [\"…\"]", shown(given)))?;
        let (fine, wrong): (Vec<_>, Vec<_>) = items.iter().map(&read).partition(Result::is_ok);
        let wrong: Vec<String> = wrong.into_iter().filter_map(Result::err).collect();
        if wrong.is_empty() {
            return Ok(fine.into_iter().filter_map(Result::ok).collect());
        }
        Err(wrong.join("; "))
    }
}

/// `10.0.0.0/8`, `::1`. Kept as it was written; whoever listens reads it again.
pub fn net(given: &Value) -> Result<String, String> {
    let wrong = |why: &str| format!("{} {why}", shown(given));
    let shape = "is not a network; write \"10.0.0.0/8\" or \"::1\"";
    let text = given.as_str().ok_or_else(|| wrong(shape))?;
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong(shape))?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let fits = |digits: &str| {
        digits.bytes().all(|byte| byte.is_ascii_digit())
            && digits.parse::<u8>().is_ok_and(|prefix| prefix <= bits)
    };
    if !prefix.is_none_or(fits) {
        return Err(wrong("has no such prefix length"));
    }
    // Addresses are compared in their plain form, so a mapped network would never match.
    if address.to_canonical() != address {
        return Err(wrong("is an IPv4 network in IPv6 clothes; write it as IPv4"));
    }
    Ok(text.to_owned())
}
