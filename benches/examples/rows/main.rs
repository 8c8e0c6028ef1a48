//! Prints the tables of `docs/BENCHMARKING.md` from what `cargo bench` has saved.
//!
//! `cargo bench && cargo run --release -p wraith-benches --example rows`. With `-- --tool` it also runs
//! `wraith-cli bench` and `demo`, which takes two minutes, for the rows that they answer.

mod published;
mod results;
mod table;
mod tables;
mod tool;
mod units;

use std::error::Error;

use wraith_benches::Machine;

use crate::results::Results;

fn main() -> Result<(), Box<dyn Error>> {
    let with_tool = std::env::args().any(|arg| arg == "--tool");
    let results = Results::load()?;
    println!("Machine: {}.\n", Machine::detect());
    let tables = [
        published::crypto(&results),
        published::transport(&results),
        tables::seam(&results),
        tables::handshake(&results),
        tables::level0(&results),
        tables::packet(&results),
    ];
    for table in tables {
        print!("{table}");
    }
    if with_tool {
        print!("{}{}", tool::loopback()?, tool::file()?);
    }
    Ok(())
}
