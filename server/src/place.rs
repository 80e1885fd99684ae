//! A place in the journal: a segment and a byte in it. What `repair --cut` takes.
//!
//! Lives here: reading a place from what an operator types, and finding the one to cut at when
//! the store tells of damage. Stays out: cutting.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where the store keeps its segments, in the data folder; see `docs/store.md`.
const JOURNAL: &str = "journal";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: PathBuf,
    pub segment: u64,
    pub offset: u64,
}

impl Place {
    /// Segments are named by twenty digits and `.seg`; nothing else has a number.
    pub fn parse(file: &Path, offset: u64) -> Option<Place> {
        let digits = file.file_name()?.to_str()?.strip_suffix(".seg")?;
        let right = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let segment = digits.parse().ok().filter(|_| right)?;
        Some(Place { file: file.to_path_buf(), segment, offset })
    }

    /// Where to cut when the store finds damage at byte `offset` of `file`: there, or, if the
    /// whole file is missing, before the first that is left behind it. `None` when no cut helps.
    pub fn before_damage(data: &Path, file: &Path, offset: u64) -> Option<Place> {
        let damaged = Place::parse(file, offset)?;
        if damaged.file.is_file() {
            return Some(damaged);
        }
        let entries = std::fs::read_dir(data.join(JOURNAL)).ok()?;
        let places = entries.flatten().filter_map(|entry| Place::parse(&entry.path(), 0));
        places.filter(|place| place.segment > damaged.segment).min_by_key(|place| place.segment)
    }

    pub fn is_same(&self, other: &Place) -> bool {
        (self.segment, self.offset) == (other.segment, other.offset)
    }
}

/// As it is typed.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file.display(), self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_segment_is_a_place() {
        let place = Place::parse(Path::new("data/journal/00000000000000000012.seg"), 7);
        assert_eq!(place.expect("a segment").segment, 12);
        for other in ["12.seg", "00000000000000000012.snap", "+0000000000000000012.seg", "", ".."] {
            assert_eq!(Place::parse(Path::new(other), 7), None, "{other}");
        }
    }
}
