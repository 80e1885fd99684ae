//! The OpenAPI document in `docs/` is the one that the code makes.

use std::path::Path;

/// To take a change over: `WAITROOM_PIN=1 cargo test -p waitroom-api --test openapi`.
#[test]
fn the_pinned_document_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let made = serde_json::to_string_pretty(&waitroom_api::openapi::document());
    let made = made.expect("a document is plain data") + "\n";
    if std::env::var_os("WAITROOM_PIN").is_some() {
        std::fs::write(&path, &made).expect("docs can be written");
    }
    let pinned = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        pinned == made,
        "docs/openapi.json is not what the code says; look at the change, then pin it with \
         WAITROOM_PIN=1 cargo test -p waitroom-api --test openapi"
    );
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_has_its_own_name() {
    let document = waitroom_api::openapi::document();
    let text = document.to_string();
    for (at, _) in text.match_indices("\"$ref\":\"#/") {
        let rest = &text[at + 9..];
        let pointer = &rest[..rest.find('"').expect("a closing quote")];
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
    let mut ids = Vec::new();
    for item in document["paths"].as_object().expect("paths").values() {
        for operation in item.as_object().expect("an item").values() {
            ids.push(operation["operationId"].as_str().expect("an id").to_owned());
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "an operation id is there twice");
}
