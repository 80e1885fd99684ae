//! ECDSA has two good signatures for one statement, (r, s) and (r, n − s). Whoever holds one can
//! write down the other without any key: an altered text that still verifies. We sign with the
//! smaller s and refuse the larger, so a pass has one spelling. Nothing rests on this but the
//! plain promise that no altered pass is accepted.

/// The order n of P-256, big endian.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// A signature of ES256: r and s, 32 bytes each.
const LEN: usize = 64;

/// Whether s is the smaller of the two. A text of another length is no signature of ES256.
pub fn is_low(signature: &[u8]) -> bool {
    let Some(s) = s_of(signature) else { return false };
    s <= &negated(s)
}

/// The same signature with the smaller s.
pub fn lower(signature: &mut [u8]) {
    if let Some(s) = s_of(signature)
        && !is_low(signature)
    {
        let low = negated(s);
        signature[LEN / 2..].copy_from_slice(&low);
    }
}

fn s_of(signature: &[u8]) -> Option<&[u8; 32]> {
    if signature.len() != LEN {
        return None;
    }
    signature[LEN / 2..].try_into().ok()
}

/// n − s, modulo 2²⁵⁶: for an s above n, which verifies nowhere, it is merely some number.
fn negated(s: &[u8; 32]) -> [u8; 32] {
    let mut out = [0; 32];
    let mut borrow = false;
    for at in (0..32).rev() {
        let (partial, first) = ORDER[at].overflowing_sub(s[at]);
        let (byte, second) = partial.overflowing_sub(u8::from(borrow));
        out[at] = byte;
        borrow = first || second;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(s: [u8; 32]) -> [u8; 64] {
        let mut out = [7; 64];
        out[32..].copy_from_slice(&s);
        out
    }

    #[test]
    fn of_the_two_spellings_one_is_low() {
        let mut one = [0; 32];
        one[31] = 1;
        assert!(is_low(&signature(one)));
        assert!(!is_low(&signature(negated(&one))));
        assert_eq!(negated(&negated(&one)), one);
        let mut high = signature(negated(&one));
        lower(&mut high);
        assert_eq!(high, signature(one));
        lower(&mut high);
        assert_eq!(high, signature(one));
    }

    #[test]
    fn the_border_is_half_the_order() {
        // (n − 1) / 2, written down from the order by hand: n is odd.
        let mut half = [0; 32];
        let mut carry = 0;
        for at in 0..32 {
            half[at] = ORDER[at] >> 1 | carry << 7;
            carry = ORDER[at] & 1;
        }
        assert!(is_low(&signature(half)));
        assert!(!is_low(&signature(negated(&half))));
    }

    #[test]
    fn a_signature_of_another_length_is_not_low() {
        assert!(!is_low(&[]));
        assert!(!is_low(&[0; 63]));
        assert!(!is_low(&[0; 65]));
    }
}
