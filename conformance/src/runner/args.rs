//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use wraith_conformance::{Budget, Options};

use crate::dht::Dht;
use crate::drivers::{ALL, Name};
use crate::peer::Peer;

/// Proves the drivers of WRAITH right, clause by clause of docs/DRIVERS.md.
#[derive(Parser, Debug)]
#[command(name = "wraith-conformance", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the cases; exit code 0 only if every driver conforms
    Run(Run),
    /// Try an implementation of the protocol, clause by clause of docs/PROTOCOL.md
    Peer(Peer),
    /// Try a node of the DHT, clause by clause of docs/PROTOCOL.md §14
    Dht(Dht),
    /// Show which cases reject which deliberately broken driver
    Broken,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Drivers to run, separated by commas
    #[arg(long, value_name = "DRIVER", value_delimiter = ',', value_enum, default_value = ALL)]
    pub(crate) driver: Vec<Name>,
    /// Only cases with this in their name, such as tx/
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Seed of everything random; without it that of `WRAITH_SEED`, or 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How much the long cases do; without it that of `WRAITH_BUDGET`, or short
    #[arg(long, value_name = "short|full", value_parser = budget)]
    budget: Option<Budget>,
    /// Fail for what cannot be tested here, and for what a driver should do and does not
    #[arg(long)]
    strict: bool,
    /// Print one JSON object for each driver
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an XML report for continuous integration as well
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Print the cases and run none
    #[arg(long)]
    pub(crate) list: bool,
}

impl Run {
    /// What the environment and the command line ask for; the command line wins.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let mut options = Options::from_env().map_err(|error| error.to_string())?;
        options.only.clone_from(&self.only);
        options.seed = self.seed.unwrap_or(options.seed);
        options.budget = self.budget.unwrap_or(options.budget);
        options.strict |= self.strict;
        Ok(options)
    }
}

fn budget(text: &str) -> Result<Budget, &'static str> {
    match text {
        "short" => Ok(Budget::Short),
        "full" => Ok(Budget::Full),
        _ => Err("it is short or full"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
