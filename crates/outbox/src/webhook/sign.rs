//! Signatures that receivers check, as Standard Webhooks 1.0 writes them.
//!
//! `webhook-signature` holds `v1,` and the HMAC-SHA-256 of `id.timestamp.body` in base64, one for
//! each secret, with spaces between. A secret is `whsec_` and 24 to 64 bytes in base64. Its file has
//! one line, or two while one follows the other: every message is signed with both, so that
//! receivers can change theirs at any moment in between.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const PREFIX: &str = "whsec_";
/// One, and the one that follows it.
const SECRETS_MAX: usize = 2;

/// The secrets of one endpoint, read again when their file changes.
pub struct Secrets {
    file: PathBuf,
    read: Mutex<(Option<SystemTime>, Vec<Vec<u8>>)>,
}

/// What is wrong with a file of secrets; shows nothing of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretsError {
    file: PathBuf,
    why: String,
}

impl fmt::Display for SecretsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.why)
    }
}

impl std::error::Error for SecretsError {}

impl Secrets {
    pub fn load(file: &Path) -> Result<Secrets, SecretsError> {
        let secrets = Secrets { file: file.to_owned(), read: Mutex::default() };
        secrets.sign("", 0, b"")?;
        Ok(secrets)
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, id: &str, at_s: u64, body: &[u8]) -> Result<String, SecretsError> {
        let wrong = |why: String| SecretsError { file: self.file.clone(), why };
        let unread = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        let changed = std::fs::metadata(&self.file).and_then(|it| it.modified()).map_err(unread)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0 != Some(changed) {
            let text = std::fs::read_to_string(&self.file).map_err(unread)?;
            *read = (Some(changed), parse(&text).map_err(wrong)?);
        }
        let signed =
            read.1.iter().map(|secret| format!("v1,{}", signature(secret, id, at_s, body)));
        Ok(signed.collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets of {}", self.file.display())
    }
}

fn parse(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() || lines.len() > SECRETS_MAX {
        return Err("holds one secret, or two while one follows the other, a line each".to_owned());
    }
    let shape = "a secret is whsec_ and 24 to 64 bytes in base64";
    let one = |line: &&str| {
        let secret = line.strip_prefix(PREFIX).and_then(|it| STANDARD.decode(it).ok());
        secret.filter(|it| (24..=64).contains(&it.len())).ok_or(shape.to_owned())
    };
    lines.iter().map(one).collect()
}

fn signature(secret: &[u8], id: &str, at_s: u64, body: &[u8]) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret).expect("any length is a key");
    for part in [id.as_bytes(), b".", at_s.to_string().as_bytes(), b".", body] {
        mac.update(part);
    }
    STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_known_message_has_the_known_signature() {
        let secrets = parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").expect("a secret");
        let body = br#"{"test": 2432232314}"#;
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        assert_eq!(
            signature(&secrets[0], id, 1_614_265_330, body),
            "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn a_file_holds_one_secret_or_two_and_says_what_is_wrong() {
        let one = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(parse(&format!("{one}\n\n{one}\n")).map(|it| it.len()), Ok(2));
        for wrong in
            ["", "\n", "secret", "whsec_", "whsec_c2hvcnQ=", &format!("{one}\n{one}\n{one}")]
        {
            let why = parse(wrong).expect_err(wrong);
            assert!(!wrong.contains("c2hv") || !why.contains("c2hv"), "it shows the secret");
        }
    }

    #[test]
    fn a_file_that_changes_is_read_again() {
        let file = std::env::temp_dir().join(format!("hook-secret-{}", std::process::id()));
        let one = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
        std::fs::write(&file, one).expect("a file");
        let secrets = Secrets::load(&file).expect("good");
        let before = secrets.sign("id", 1, b"x").expect("signed");
        std::fs::write(&file, format!("whsec_{}\n{one}", STANDARD.encode([7; 32])))
            .expect("a file");
        // The clock of files is coarse; a change within one tick of it is still a change.
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        let handle = std::fs::File::options().write(true).open(&file).expect("the file");
        handle.set_modified(later).expect("a time");
        let after = secrets.sign("id", 1, b"x").expect("signed");
        assert_eq!(after.split(' ').count(), 2);
        assert_eq!(after.split(' ').nth(1), Some(&*before), "the old one is still there");
        let _ = std::fs::remove_file(&file);
    }
}
