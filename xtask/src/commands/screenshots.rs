//! `cargo xtask screenshots DIR`: pictures to look at. The waiting page in every state, every view
//! of the console, and the README's own, which are taken from a demo that runs.

use std::path::{Path, PathBuf};

use super::console;
use crate::failure::Outcome;
use crate::shell::{Run, root};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the pictures go; the folder is made if it is not there.
    folder: PathBuf,
    /// Of the waiting page, only pictures whose name has this in it, such as `phone` or
    /// `waiting-dark`; and nothing else.
    name: Option<String>,
    /// Only the README's, from a demo: docs/images.
    #[arg(long, conflicts_with = "name")]
    readme: bool,
}

pub fn run(args: &Args) -> Outcome {
    // Commands run at the root of the repository; the folder was meant from where we are.
    let folder = std::path::absolute(&args.folder).unwrap_or_else(|_| args.folder.clone());
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let parts = target.join("browser-parts");
    let shown = |path: &Path| path.display().to_string();
    let picture = |script: &str, to: &Path| {
        Run::new("node")
            .arg(script)
            .arg(shown(to))
            .env("RENDER_PAGE", &shown(&target.join("debug/render-page")))
            .env("WAITROOM_BIN", &shown(&target.join("debug/waitroom")))
            .env("WAITROOM_BROWSER_PARTS", &shown(&parts))
    };
    if !args.readme {
        Run::new("cargo build -q -p waitroom-pages --bin render-page").run()?;
        picture("crates/pages/browser/screenshots.mjs", &folder).args(args.name.clone()).run()?;
    }
    if args.name.is_some() {
        return Ok(());
    }
    console::run()?;
    Run::new("cargo build -q --workspace --bins").run()?;
    if args.readme {
        return picture("server/tests/demo/pictures.mjs", &folder).run();
    }
    Run::new("npm ci --no-audit --no-fund --prefix crates/console/browser").run()?;
    picture("crates/console/browser/screenshots.mjs", &folder.join("console")).run()?;
    picture("server/tests/demo/pictures.mjs", &folder.join("readme")).run()
}
