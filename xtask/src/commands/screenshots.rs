//! `cargo xtask screenshots DIR`: the waiting page in every state, as pictures to look at.

use std::path::{Path, PathBuf};

use crate::failure::Outcome;
use crate::shell::{Run, root};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the pictures go; the folder is made if it is not there.
    folder: PathBuf,
    /// Only pictures whose name has this in it, such as `phone` or `waiting-dark`.
    name: Option<String>,
}

pub fn run(args: &Args) -> Outcome {
    Run::new("cargo build -q -p waitroom-pages --bin render-page").run()?;
    // Commands run at the root of the repository; the folder was meant from where we are.
    let folder = std::path::absolute(&args.folder).unwrap_or_else(|_| args.folder.clone());
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let parts = target.join("browser-parts");
    let shown = |path: &Path| path.display().to_string();
    Run::new("node crates/pages/browser/screenshots.mjs")
        .arg(shown(&folder))
        .args(args.name.clone())
        .env("RENDER_PAGE", &shown(&target.join("debug/render-page")))
        .env("WAITROOM_BROWSER_PARTS", &shown(&parts))
        .run()
}
