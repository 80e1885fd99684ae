//! Files made by `waitroom export`, as `import` and `verify` read them.

use std::fs::File;
use std::path::Path;

use waitroom_store::disk::{RealDisk, RealFile};
use waitroom_store::file::Portable;

use crate::data::absolute;
use crate::failure::{Exit, Failure};

/// Opens an exported room; what follows is checked batch by batch.
pub fn open(path: &Path) -> Result<Portable<RealFile>, Failure> {
    // The store opens files for writing too, whatever it does with them. A file that does not let
    // us is no damaged one.
    if let Err(error) = File::options().read(true).write(true).open(path) {
        return Err(Failure::new(Exit::Io, format!("cannot read {}: {error}", path.display())));
    }
    let path = absolute(path)?;
    Portable::open(&RealDisk::new(""), &path).map_err(|error| not_whole(&path, &error.to_string()))
}

/// The file is not what `export` wrote.
pub fn not_whole(path: &Path, why: &str) -> Failure {
    Failure::new(Exit::Wrong, format!("export {}: not whole: {why}", path.display()))
        .coded("WR-2010")
        .means("the file is damaged or was altered; nothing of it was used")
        .advise("copy the file again, or export the room again")
}
