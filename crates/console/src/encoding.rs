//! What a client unpacks: `Accept-Encoding`, as far as it concerns us.

/// How a file can be packed besides not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Brotli,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    gzip: bool,
    brotli: bool,
}

impl Accepted {
    pub(crate) fn contains(self, packing: Packing) -> bool {
        match packing {
            Packing::Gzip => self.gzip,
            Packing::Brotli => self.brotli,
        }
    }
}

/// Reads the header. A name with `q=0` is refused, also against a `*`; which of the others a
/// client likes best does not matter to us: we send the smallest.
pub(crate) fn accepted(header: &str) -> Accepted {
    let said = |name: &str| {
        header.split(',').find_map(|part| {
            let mut words = part.split(';').map(str::trim);
            let named = words.next().is_some_and(|word| word.eq_ignore_ascii_case(name));
            named.then(|| !words.any(is_refusal))
        })
    };
    let any = said("*").unwrap_or(false);
    Accepted { gzip: said("gzip").unwrap_or(any), brotli: said("br").unwrap_or(any) }
}

/// `q=0`, `q=0.0`, `Q=0.000`.
fn is_refusal(parameter: &str) -> bool {
    let value = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    value.is_some_and(|(_, value)| value.trim().parse::<f32>().is_ok_and(|value| value <= 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_takes_both_and_a_plain_client_neither() {
        assert_eq!(accepted("gzip, deflate, br, zstd"), Accepted { gzip: true, brotli: true });
        assert_eq!(accepted(""), Accepted::default());
        assert_eq!(accepted("identity"), Accepted::default());
        assert_eq!(accepted("gzipped, xbr"), Accepted::default());
    }

    #[test]
    fn what_is_refused_is_not_sent_even_when_anything_else_will_do() {
        assert_eq!(accepted("br;q=0, *"), Accepted { gzip: true, brotli: false });
        assert_eq!(accepted("GZIP; Q=0.0, br;q=0.5"), Accepted { gzip: false, brotli: true });
        assert_eq!(accepted("*;q=0"), Accepted::default());
    }
}
