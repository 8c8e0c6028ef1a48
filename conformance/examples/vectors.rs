//! Writes the test vectors of the protocol into `conformance/vectors`, and ties them to its version in `LOCK`.
//!
//! A file that is there may not change before the version does.

use std::path::Path;
use std::{fs, io};

use wraith_conformance::vectors::{files, lock_line};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    fs::create_dir_all(&folder)?;
    let lock = folder.join("LOCK");
    let mut lines: Vec<String> = match fs::read_to_string(&lock) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    for file in files() {
        let line = lock_line(&file);
        let (named, _) = line.rsplit_once(' ').unwrap_or_default();
        if let Some(former) = lines.iter().find(|former| former.starts_with(&format!("{named} "))) {
            if *former != line {
                let why = "it is another than the one that LOCK has for this version of the protocol";
                return Err(io::Error::other(format!("{}: {why}", file.name)));
            }
        } else {
            lines.push(line);
        }
        fs::write(folder.join(file.name), file.text)?;
    }
    lines.sort_unstable();
    fs::write(lock, lines.join("\n") + "\n")
}
