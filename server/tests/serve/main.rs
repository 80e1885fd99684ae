//! The real binary, talked to by clients that are not ours: curl, a browser, Python.
//!
//! One file per interface or concern. A client that is missing fails the test and says so.

mod adapter_key;
mod browser;
mod curl;
mod docs_page;
mod drain;
mod instance;
mod problems;
mod schemathesis;
mod secrets;
mod site;
mod visitor;
mod web_client;
