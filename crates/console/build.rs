//! Puts what Vite built (`web/dist`) into the binary.
//!
//! Lives here: the table of files, written to `OUT_DIR/assets.rs`. Vite has already named each
//! file by its contents and packed it twice (`.gz`, `.br`), so nothing is compressed here and
//! this crate depends on nothing.
//! Where nothing was built the table is empty, the build says so, and `/console/` answers a plain
//! page with the command: whoever only wants the server needs no Node.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let dist = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("web")
        .join("dist");
    // The folder itself and not its files: a new build removes and adds files. It is always there
    // (it holds a .gitignore): cargo would run us every time for one that is not.
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = vec![];
    if dist.join("index.html").is_file() {
        collect(&dist, &dist, &mut files);
        files.sort();
    } else {
        println!("cargo::warning=the operator console is not built; run `cargo xtask console` to");
        println!("cargo::warning=have it in the binary (without it /console/ says how)");
    }
    let mut table = String::from("pub(crate) const FILES: &[File] = &[\n");
    for name in &files {
        let file = dist.join(name);
        let packed = |ending: &str| {
            let packed = PathBuf::from(format!("{}.{ending}", file.display()));
            if packed.is_file() {
                format!("Some(include_bytes!({:?}).as_slice())", packed.display().to_string())
            } else {
                "None".to_owned()
            }
        };
        writeln!(
            table,
            "    File {{ name: {name:?}, plain: include_bytes!({:?}).as_slice(), gzip: {}, brotli: {} }},",
            file.display().to_string(),
            packed("gz"),
            packed("br"),
        )
        .expect("writing to a string cannot fail");
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("assets.rs");
    fs::write(&out, table).unwrap_or_else(|error| panic!("write {}: {error}", out.display()));
}

/// All files below `folder` but the packed ones and git's, as names relative to `top` with `/` between.
fn collect(top: &Path, folder: &Path, files: &mut Vec<String>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("read the folder {}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry of a folder that was just opened").path();
        if path.is_dir() {
            collect(top, &path, files);
            continue;
        }
        let name = path.strip_prefix(top).expect("it lies below").to_string_lossy().into_owned();
        let is_packed = name.ends_with(".gz") || name.ends_with(".br");
        if !is_packed && !name.starts_with('.') {
            files.push(name);
        }
    }
}
