//! The unit, as systemd itself reads and judges it.

use std::process::Command;

use crate::part::{deployed, folder};
use crate::tools::done;

/// From 0 (locked in) to 100 (can do anything); what a service needs sockets for costs some.
const EXPOSURE_MAX: &str = "--threshold=15";

#[test]
fn the_unit_is_without_mistakes_and_leaves_little_open() {
    let ours = env!("CARGO_BIN_EXE_waitroom");
    let unit = deployed(
        "systemd/waitroom.service",
        &[("ExecStart=/usr/local/bin/waitroom", &format!("ExecStart={ours}"))],
    );
    let folder = folder("unit");
    let file = folder.join("waitroom.service");
    std::fs::write(&file, unit).expect("a file");
    let said = done(Command::new("systemd-analyze").arg("verify").arg(&file));
    assert_eq!(said, "");
    done(
        Command::new("systemd-analyze")
            .args(["security", "--offline=true", EXPOSURE_MAX])
            .arg(&file),
    );
    let _ = std::fs::remove_dir_all(folder);
}
