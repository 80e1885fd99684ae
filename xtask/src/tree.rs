//! The tracked files of the repository, as paths and texts.
//!
//! Rules look at this value instead of the disk, so a test can hand them a small invented
//! tree with exactly one fault in it.

use std::collections::BTreeMap;
use std::fs;

use crate::failure::{OrFail, Outcome};
use crate::shell::{Run, root};

/// Paths are relative to the root, with `/` between folders. Files that are not UTF-8 keep
/// their place with an empty text: they exist, but no rule reads inside them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// What git tracks, as it lies on disk. A tracked file that was just deleted is left out:
    /// the deletion is the state that will be committed.
    pub fn tracked() -> Outcome<Self> {
        // Untracked files that are not ignored count as well: they are about to be committed,
        // and a rule that looks away until then would only fail later, in CI.
        let list = Run::new("git ls-files -z --cached --others --exclude-standard").read()?;
        let mut files = BTreeMap::new();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            let on_disk = root().join(path);
            if !on_disk.is_file() {
                continue;
            }
            let bytes = fs::read(&on_disk).or_fail(|| format!("read {path}"))?;
            files.insert(path.to_owned(), String::from_utf8(bytes).unwrap_or_default());
        }
        Ok(Self { files })
    }

    /// An invented tree, for tests of the rules.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = |(path, text): (&str, &str)| (path.to_owned(), text.to_owned());
        Self { files: files.into_iter().map(owned).collect() }
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// All files, ordered by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Files below `folder` (written `a/b/`) whose name ends with `suffix`.
    pub fn under<'a>(
        &'a self,
        folder: &'a str,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| path.starts_with(folder) && path.ends_with(suffix))
    }
}
