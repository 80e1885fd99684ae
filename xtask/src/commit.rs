//! Which tree a figure or a result belongs to.

use crate::shell::Run;

/// The commit that is checked out, with `-dirty` behind it when tracked files differ from it;
/// `unknown` outside a git checkout, because a benchmark of an unpacked archive is still one.
pub fn commit() -> String {
    let Ok(hash) = Run::new("git rev-parse HEAD").read() else { return "unknown".into() };
    let changes = Run::new("git status --porcelain --untracked-files=no").read();
    name(hash.trim(), changes.as_deref().unwrap_or("the state could not be read"))
}

fn name(hash: &str, changes: &str) -> String {
    if changes.trim().is_empty() { hash.to_owned() } else { format!("{hash}-dirty") }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_changed_tree_is_never_called_by_the_bare_commit() {
        assert_eq!(name("abc", ""), "abc");
        assert_eq!(name("abc", " M README.md\n"), "abc-dirty");
    }
}
