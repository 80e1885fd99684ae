//! The staff pass: somebody of the house, who need not wait. Checked by us only.
//!
//! ```text
//! wf1_ base64url( key id 1 | number 8 | end, seconds 4 | MAC 16 )
//! ```
//!
//! The number says which of them it is, for the audit; nothing else is in it.

use crate::{
    sealed::{Sealed, TokenText},
    secrets::WrongSecrets,
};

const BODY: usize = 13;

/// What a genuine staff pass says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaffPass {
    pub number: u64,
    /// Seconds since the Unix epoch; over from this second on.
    pub expires_s: u32,
}

/// Writes and reads staff passes.
#[derive(Debug)]
pub struct StaffPasses(Sealed<BODY>);

impl StaffPasses {
    /// Secrets with their ids, oldest first: the last one signs, all check.
    pub fn new(keys: &[(u8, [u8; 32])]) -> Result<Self, WrongSecrets> {
        Sealed::new("wf1_", "staff-pass", keys).map(StaffPasses)
    }

    pub fn write(&self, room: &str, pass: StaffPass) -> TokenText {
        let mut body = [0; BODY];
        body[1..9].copy_from_slice(&pass.number.to_be_bytes());
        body[9..].copy_from_slice(&pass.expires_s.to_be_bytes());
        self.0.write(room, body)
    }

    /// The staff pass, if we wrote it for this room and it is not over.
    pub fn read(&self, room: &str, text: &str, now_s: u64) -> Option<StaffPass> {
        let body = self.0.read(room, text)?;
        let pass = StaffPass {
            number: u64::from_be_bytes(body[1..9].try_into().expect("eight bytes")),
            expires_s: u32::from_be_bytes(body[9..].try_into().expect("four bytes")),
        };
        (now_s < u64::from(pass.expires_s)).then_some(pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staff_pass_is_good_in_its_room_until_its_end() {
        let staff = StaffPasses::new(&[(1, [7; 32])]).expect("one key");
        let text = staff.write("spring", StaffPass { number: 9, expires_s: 100 });
        let read =
            |room: &str, text: &str, now_s| staff.read(room, text, now_s).map(|it| it.number);
        assert_eq!(read("spring", &text, 99), Some(9));
        assert_eq!(read("spring", &text, 100), None, "it is over");
        assert_eq!(read("autumn", &text, 99), None, "another room's");
        let other = StaffPasses::new(&[(1, [8; 32])]).expect("one key");
        assert!(other.read("spring", &text, 99).is_none(), "another house's");
    }
}
