//! Contents, their chunks and lists (`PROTO §10.2`, `§10.4`).

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_root};
use serde_json::{Value, json};

use super::{File, file_of, hex, vector};

const CHUNK: usize = 1 << 20;

pub(super) fn file() -> File {
    let sizes = [0, 1, 1000, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 1234, 5 * CHUNK];
    let vectors: Vec<Value> = sizes.map(content).into();
    let about = "Contents whose byte number i is i mod 251, with their id and the values of their chunks; no values for \
                 one chunk. Level 1 is the top list of each.";
    file_of("content.json", about, "PROTO §10.2, §10.4", &vectors)
}

fn content(size: usize) -> Value {
    let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let id = blake3::hash(&bytes);
    let mut values = Vec::new();
    if size > CHUNK {
        values.extend(bytes.chunks(CHUNK).enumerate().map(|(number, chunk)| {
            blake3::Hasher::new().set_input_offset((number * CHUNK) as u64).update(chunk).finalize_non_root()
        }));
        // The list gives the id, as it has to.
        assert_eq!(root(&values), *id.as_bytes(), "{size} bytes");
    }
    let values: Vec<String> = values.iter().map(hex).collect();
    vector(
        &format!("{size} bytes"),
        json!({ "size": size }),
        json!({ "content_id": hex(id.as_bytes()), "values": values }),
    )
}

/// Two or more values combined with the root flag at the end.
fn root(values: &[[u8; 32]]) -> [u8; 32] {
    let (left, right) = values.split_at(left_half(values.len()));
    *merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).as_bytes()
}

/// Values combined without the root flag; one stands for itself.
fn subtree(values: &[[u8; 32]]) -> [u8; 32] {
    if let [value] = values {
        return *value;
    }
    let (left, right) = values.split_at(left_half(values.len()));
    blake3::hazmat::merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash)
}

/// The largest power of two below the number of leaves goes to the left (BLAKE3 §2.1).
fn left_half(count: usize) -> usize {
    count.next_power_of_two() / 2
}
