//! The tree keeps its own rules. What each rule means is tested beside the rule.

use xtask::tidy;
use xtask::tree::Tree;

#[test]
fn the_tree_is_tidy() {
    let tree = Tree::tracked().expect("git lists the tree");
    let complaints = tidy::complaints(&tree);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
