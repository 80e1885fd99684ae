use std::io::Write;
use std::process::{Command, Stdio};

use crate::{WAITS, shown};
use serde_json::Value;
use waitroom_pages::{By, Waiting, languages, waiting};

/// Everything that a waiting page loads, compressed as a server would. Fifteen kilobytes are one
/// flight of packets on a fresh connection.
const BYTES_MAX: u64 = 15 * 1024;

#[test]
fn the_page_is_under_fifteen_kilobytes_compressed_in_every_language() {
    let pages: Vec<String> = languages()
        .map(|(tag, _)| {
            let notices = &[By::Push, By::Email, By::Sms];
            let answer = Some(WAITS);
            waiting(&Waiting { accept_language: tag, answer, notices, ..shown() }).html
        })
        .collect();
    let script = "const z = require('zlib'), all = JSON.parse(require('fs').readFileSync(0, 'utf8'));\
        console.log(JSON.stringify(all.map(it => [Buffer.byteLength(it), z.gzipSync(it, {level: 9}).length,\
        z.brotliCompressSync(it).length])))";
    let mut node = Command::new("node")
        .args(["-e", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Node is needed for this test: apt-get install nodejs");
    let mut stdin = node.stdin.take().expect("stdin is piped");
    stdin.write_all(serde_json::json!(pages).to_string().as_bytes()).expect("Node reads");
    drop(stdin);
    let out = node.wait_with_output().expect("Node ends");
    let sizes: Vec<[u64; 3]> = serde_json::from_slice::<Value>(&out.stdout)
        .and_then(serde_json::from_value)
        .expect("sizes of every page");
    assert_eq!(sizes.len(), pages.len());
    for ((tag, _), [plain, gzip, brotli]) in languages().zip(sizes) {
        println!("{tag}: {plain} bytes, gzip {gzip}, brotli {brotli}");
        assert!(gzip < BYTES_MAX && brotli < BYTES_MAX, "{tag}: gzip {gzip}, brotli {brotli}");
    }
}
