//! `waitroom audit verify` against somebody who knows the format of an export and its checksums,
//! and against one who only has the folder.

use std::path::{Path, PathBuf};

use crate::server::{Server, offline};

/// An export, piece by piece: kind, body. The head of each piece holds its length and a CRC-32.
struct Pieces(Vec<Piece>);

type Piece = (u8, Vec<u8>);

const MAGIC: &[u8; 8] = b"WRROOM01";
/// Batches are kind B: epoch, nonce, number, after, events, time, then the payload.
const BATCH: u8 = b'B';
const PAYLOAD_AT: usize = 4 + 16 + 8 + 8 + 4 + 8;

impl Pieces {
    fn read(path: &Path) -> Pieces {
        let bytes = std::fs::read(path).expect("the export");
        let mut rest = bytes.strip_prefix(MAGIC).expect("an export");
        let mut pieces = Vec::new();
        while let [kind, head @ ..] = rest {
            let len = u32::from_le_bytes(head[..4].try_into().expect("four bytes")) as usize;
            let (body, tail) = head[8..].split_at(len);
            let written = u32::from_le_bytes(head[4..8].try_into().expect("four bytes"));
            assert_eq!(written, checksum(*kind, body), "we know the checksum");
            pieces.push((*kind, body.to_vec()));
            rest = tail;
        }
        Pieces(pieces)
    }

    fn write(&self, path: &Path) {
        let mut bytes = MAGIC.to_vec();
        for (kind, body) in &self.0 {
            bytes.push(*kind);
            bytes.extend((body.len() as u32).to_le_bytes());
            bytes.extend(checksum(*kind, body).to_le_bytes());
            bytes.extend(body);
        }
        std::fs::write(path, bytes).expect("it can be written");
    }

    /// Where the batches stand that hold this word.
    fn holding(&self, word: &str) -> Vec<usize> {
        let has = |body: &[u8]| body.windows(word.len()).any(|it| it == word.as_bytes());
        let all = self.0.iter().enumerate();
        all.filter(|(_, (kind, body))| *kind == BATCH && has(body)).map(|(at, _)| at).collect()
    }
}

fn checksum(kind: u8, body: &[u8]) -> u32 {
    let len = (body.len() as u32).to_le_bytes();
    let mut crc = !0u32;
    for byte in [kind].iter().chain(&len).chain(body) {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// A folder with an installation in which a few things were done, and its audit as `audit.wrroom`.
fn installation() -> PathBuf {
    let server = Server::start();
    for n in 0..6 {
        let body = format!(r#"{{"message":"change number {n}"}}"#);
        server.own("PATCH", "/admin/v1/rooms/default", &body);
    }
    let folder = server.stop();
    offline(&folder, &["audit", "export", "--data", "data", "--to", "audit.wrroom"]).exits(0);
    folder
}

fn verify(folder: &Path) -> crate::server::Said {
    offline(folder, &["audit", "verify", "--export", "audit.wrroom", "--json"])
}

#[test]
fn an_audit_that_nobody_touched_holds_in_the_folder_and_in_an_export() {
    let folder = installation();
    let here = offline(&folder, &["audit", "verify", "--data", "data", "--json"]).exits(0).json();
    let there = verify(&folder).exits(0).json();
    assert_eq!(here, there);
    // The room was made, and changed six times; a key was made by the server.
    assert_eq!(here["acts"], 8, "{here}");
    let listed = offline(&folder, &["audit", "list", "--data", "data", "--json"]).exits(0);
    assert_eq!(listed.out.lines().count(), 8, "{}", listed.out);
    let people = offline(&folder, &["audit", "list", "--data", "data"]).exits(0).out;
    assert!(people.contains("change number 3") && people.contains("configure"), "{people}");
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn an_entry_that_is_altered_left_out_or_moved_is_found() {
    let folder = installation();
    let file = folder.join("audit.wrroom");
    let whole = Pieces::read(&file);
    let acts = whole.holding("change number");
    assert_eq!(acts.len(), 6);
    let meddle = |with: &dyn Fn(&mut Vec<Piece>)| {
        let mut pieces = whole.0.clone();
        with(&mut pieces);
        Pieces(pieces).write(&file);
        let said = verify(&folder).exits(1);
        let code = said.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
        assert!(["WR-2010", "WR-2014"].contains(&code.as_str()), "{said:?}");
    };
    // A word is exchanged for another of the same length.
    meddle(&|pieces| {
        let body = &mut pieces[acts[2]].1;
        let at = body.windows(8).position(|it| it == b"number 2").expect("it is there");
        body[at + 7] = b'9';
    });
    meddle(&|pieces| drop(pieces.remove(acts[3])));
    meddle(&|pieces| pieces.swap(acts[1], acts[2]));
    // The same, by somebody who repairs the numbers as well: only payloads change places.
    meddle(&|pieces| {
        let (one, two) = (pieces[acts[1]].1.clone(), pieces[acts[2]].1.clone());
        pieces[acts[1]].1.splice(PAYLOAD_AT.., two[PAYLOAD_AT..].iter().copied());
        pieces[acts[2]].1.splice(PAYLOAD_AT.., one[PAYLOAD_AT..].iter().copied());
    });
    // An entry that never was, a copy of another.
    meddle(&|pieces| pieces.insert(acts[4], pieces[acts[4]].clone()));
    whole.write(&file);
    verify(&folder).exits(0);
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn a_chain_that_was_written_down_tells_of_a_record_that_was_rewritten_as_a_whole() {
    let folder = installation();
    let told = verify(&folder).exits(0).json();
    let (head, chain) =
        (told["head"].to_string(), told["chain"].as_str().expect("a chain").to_owned());
    let check = |folder: &Path| {
        let line = ["audit", "verify", "--data", "data", "--head", &head, "--chain", &chain];
        offline(folder, &line)
    };
    check(&folder).exits(0);
    // Another installation in which as much was done has a whole chain, but another one.
    let other = installation();
    let said = check(&other).exits(1);
    assert!(said.err.contains("WR-2014") && said.err.contains("rewritten"), "{said:?}");
    for folder in [folder, other] {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[test]
fn a_flipped_byte_in_the_folder_is_found() {
    let folder = installation();
    let mut journal: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder.join("data/journal")).expect("a journal") {
        journal.push(entry.expect("an entry").path());
    }
    journal.sort();
    let file = journal
        .iter()
        .find(|path| {
            let all = std::fs::read(path).expect("readable");
            all.windows(15).any(|it| it == b"change number 2")
        })
        .expect("a segment with entries");
    let mut all = std::fs::read(file).expect("readable");
    let at = all.windows(15).position(|it| it == b"change number 2").expect("there") + 14;
    all[at] = b'9';
    std::fs::write(file, all).expect("it can be written");
    let said = offline(&folder, &["audit", "verify", "--data", "data"]).exits(1);
    assert!(said.err.contains("error[WR-20"), "{said:?}");
    let _ = std::fs::remove_dir_all(folder);
}
