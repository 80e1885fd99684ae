//! The commands of the built binary, against real folders: words and exit codes.
//!
//! Rooms are made by the real engine on a real store (`sale.rs`); from then on only the binary
//! touches the folder, as an operator would (`shell.rs`).

mod data_folder;
mod history;
mod repair;
mod sale;
mod shell;
mod verify;
