//! A shelf: small sealed things, each in a file of its own, that can be taken away for good.
//!
//! Lives here: what must outlive a restart and must also be able to vanish: addresses of visitors,
//! letters that a webhook did not take. A log remembers for ever, and archives and backups are made
//! of it; a file that is removed is gone.
//! Stays out: what the things are, and how many there may be.
//! Promise: what `put` returned is there after a power cut, whole or not at all; after `take_away`
//! returned, no file holds it. Whoever reads the folder reads nothing without the key.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::seal::MasterKey;
use crate::seams::OsEntropy;

/// The end of a file that is whole, and of one that is being written.
const WHOLE: &str = "sealed";
const HALF: &str = "new";

#[derive(Debug)]
pub struct Shelf {
    /// None keeps everything in memory, as the store does that goes with it.
    folder: Option<PathBuf>,
    key: MasterKey,
    /// What is there, by name; the sealed bytes only where there is no folder.
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Shelf {
    pub fn in_memory(key: MasterKey) -> Shelf {
        Shelf { folder: None, key, kept: Mutex::default() }
    }

    /// Opens the folder, making it if it is not there. What a crash left half written goes.
    pub fn open(folder: &Path, key: MasterKey) -> io::Result<Shelf> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut kept = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
            match path.extension().and_then(|it| it.to_str()) {
                Some(WHOLE) => drop(kept.insert(stem, Vec::new())),
                Some(HALF) => fs::remove_file(&path)?,
                _ => {}
            }
        }
        Ok(Shelf { folder: Some(folder.to_owned()), key, kept: Mutex::new(kept) })
    }

    /// Keeps `plain` under `name`, over whatever was there. Waits for the disk.
    pub fn put(&self, name: &str, plain: &[u8]) -> io::Result<()> {
        assert!(is_plain(name), "{name:?} would not be a file of this folder");
        let sealed = self.key.seal(&OsEntropy, &context(name), plain);
        // Held while it is written, so that two of one name cannot mix.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(folder) = &self.folder else {
            kept.insert(name.to_owned(), sealed);
            return Ok(());
        };
        let half = folder.join(format!("{name}.{HALF}"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&half)?;
        file.write_all(&sealed)?;
        file.sync_all()?;
        fs::rename(&half, folder.join(format!("{name}.{WHOLE}")))?;
        File::open(folder)?.sync_all()?;
        kept.insert(name.to_owned(), Vec::new());
        Ok(())
    }

    /// None when nothing is there by that name; an error when it does not open.
    pub fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let sealed = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            match (kept.get(name), &self.folder) {
                (None, _) => return Ok(None),
                (Some(sealed), None) => sealed.clone(),
                (Some(_), Some(folder)) => fs::read(folder.join(format!("{name}.{WHOLE}")))?,
            }
        };
        let opened = self.key.open(&context(name), &sealed);
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it does not open");
        opened.map(Some).ok_or_else(damaged)
    }

    /// Says whether anything was there.
    pub fn take_away(&self, name: &str) -> io::Result<bool> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.contains_key(name) {
            return Ok(false);
        }
        if let Some(folder) = &self.folder {
            fs::remove_file(folder.join(format!("{name}.{WHOLE}")))?;
            File::open(folder)?.sync_all()?;
        }
        kept.remove(name);
        Ok(true)
    }

    pub fn names(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    pub fn count(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn context(name: &str) -> String {
    format!("shelf/{name}")
}

/// Names become files, and visitors and operators make some of them.
fn is_plain(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(what: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("shelf-{what}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn key() -> MasterKey {
        MasterKey::from_bytes([5; 32])
    }

    #[test]
    fn what_was_put_is_there_after_a_restart_and_what_was_taken_away_is_nowhere() {
        let folder = scratch("restart");
        let shelf = Shelf::open(&folder, key()).expect("a folder");
        shelf.put("sale.1.0", b"ana@example.org").expect("put");
        shelf.put("sale.2.0", b"bo").expect("put");
        shelf.put("sale.2.0", b"bo@example.org").expect("put over it");
        drop(shelf);
        let shelf = Shelf::open(&folder, key()).expect("the same folder");
        assert_eq!(shelf.names(), ["sale.1.0", "sale.2.0"]);
        assert_eq!(
            shelf.get("sale.2.0").expect("readable").as_deref(),
            Some(&b"bo@example.org"[..])
        );
        assert!(shelf.take_away("sale.1.0").expect("gone"));
        assert!(!shelf.take_away("sale.1.0").expect("nothing there"));
        assert_eq!(shelf.get("sale.1.0").expect("readable"), None);
        assert_eq!(fs::read_dir(&folder).expect("readable").count(), 1, "no file is left of it");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn the_folder_shows_nothing_and_another_key_opens_nothing() {
        let folder = scratch("sealed");
        let shelf = Shelf::open(&folder, key()).expect("a folder");
        shelf.put("one", b"ana@example.org").expect("put");
        let bytes = fs::read(folder.join("one.sealed")).expect("the file");
        assert!(!bytes.windows(3).any(|it| it == b"ana"));
        let other = Shelf::open(&folder, MasterKey::from_bytes([6; 32])).expect("a folder");
        assert!(other.get("one").is_err());
        // Moved to another name it does not open either.
        fs::rename(folder.join("one.sealed"), folder.join("two.sealed")).expect("moved");
        assert!(Shelf::open(&folder, key()).expect("a folder").get("two").is_err());
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn what_a_crash_left_half_written_goes() {
        let folder = scratch("half");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("one.new"), b"half").expect("a file");
        assert_eq!(Shelf::open(&folder, key()).expect("a folder").names(), Vec::<String>::new());
        assert_eq!(fs::read_dir(&folder).expect("readable").count(), 0);
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn no_name_leaves_the_folder() {
        for name in ["", ".", "..", "../x", "a/b", "a\0b", ".hidden", "ä"] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}
