//! Prints the tables of `docs/BENCHMARKING.md` from what `cargo bench` has saved.
//!
//! `cargo bench && cargo run --profile bench -p wraith-benches --example rows`. With `-- --tool` it also runs
//! `wraith-cli bench` and `demo`, which takes two minutes, for the tables that they answer; with `--write` it also
//! puts what it prints into the document.

mod published;
mod results;
mod table;
mod tables;
mod tool;
mod units;

use std::error::Error;
use std::fs;
use std::path::Path;

use wraith_benches::Machine;

use crate::results::Results;

/// Behind this line of the document stands what was printed.
const MARK: &str = "<!-- Below: printed by the example `rows`. -->\n";

fn main() -> Result<(), Box<dyn Error>> {
    let has = |option: &str| std::env::args().any(|argument| argument == option);
    let mut text = format!("\nMachine: {}.\n\n", Machine::detect());
    let results = Results::load()?;
    let mut tables = vec![
        published::crypto(&results),
        published::transport(&results),
        published::sealed(&results),
        tables::seam(&results),
        tables::handshake(&results),
        tables::level0(&results),
        tables::packet(&results),
    ];
    if has("--tool") {
        tables.extend([tool::loopback()?, tool::file()?]);
    }
    let tables: Vec<_> = tables.iter().map(ToString::to_string).collect();
    text += &tables.join("\n");
    print!("{text}");
    if has("--write") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/BENCHMARKING.md");
        let document = fs::read_to_string(&path)?;
        let (before, _) = document.split_once(MARK).ok_or("the document has no mark for the tables")?;
        fs::write(path, [before, MARK, &text].concat())?;
    }
    Ok(())
}
