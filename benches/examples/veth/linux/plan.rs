//! What is to be measured.

use std::time::Duration;

use super::Result;
use super::table::Row;
use super::way::{WAYS, Way};

/// What is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Load {
    /// Unreliable datagrams of a session, each in a packet of its own.
    Encrypted,
    /// Datagrams without protocol and cipher.
    Bare,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) runs: usize,
    pub(super) duration: Duration,
    pub(super) json: bool,
    sizes: Vec<u16>,
    ways: Vec<Way>,
    loads: Vec<Load>,
}

impl Load {
    pub(super) const ALL: [Self; 2] = [Self::Encrypted, Self::Bare];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Encrypted => "encrypted",
            Self::Bare => "bare",
        }
    }
}

impl Plan {
    pub(super) fn from_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut plan = Self {
            runs: 7,
            duration: Duration::from_secs(2),
            json: false,
            sizes: vec![512, 1024, 1472],
            ways: WAYS.to_vec(),
            loads: Load::ALL.to_vec(),
        };
        while let Some(option) = arguments.next() {
            if option == "--json" {
                plan.json = true;
                continue;
            }
            let value =
                arguments.next().ok_or_else(|| usage(&format!("{option} takes a value, if it is one")))?;
            let wrong = || usage(&format!("{option} cannot be {value}"));
            let list = value.split(',');
            match option.as_str() {
                "--runs" => plan.runs = value.parse().ok().filter(|runs| *runs > 0).ok_or_else(wrong)?,
                "--seconds" => {
                    let seconds = value.parse().ok().filter(|seconds| (0.1..1e6).contains(seconds));
                    plan.duration = Duration::from_secs_f64(seconds.ok_or_else(wrong)?);
                }
                "--sizes" => {
                    let size = |size: &str| size.parse().ok().filter(|size| (64..=1472).contains(size));
                    plan.sizes = list.map(size).collect::<Option<_>>().ok_or_else(wrong)?;
                }
                "--ways" => {
                    let way = |name: &str| WAYS.into_iter().find(|way| way.name == name);
                    plan.ways = list.map(way).collect::<Option<_>>().ok_or_else(wrong)?;
                }
                "--loads" => {
                    let load = |name: &str| Load::ALL.into_iter().find(|load| load.name() == name);
                    plan.loads = list.map(load).collect::<Option<_>>().ok_or_else(wrong)?;
                }
                _ => return Err(usage(&format!("no option is called {option}")).into()),
            }
        }
        Ok(plan)
    }

    /// A row for each combination.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for &load in &self.loads {
            for &size in &self.sizes {
                rows.extend(self.ways.iter().map(|&way| Row::new(way, load, size)));
            }
        }
        rows
    }
}

fn usage(message: &str) -> String {
    let names = WAYS.map(|way| way.name).join(", ");
    format!(
        "{message}; options: --runs N, --seconds N, --sizes BYTES,… (64 to 1472), --ways NAME,…, \
         --loads encrypted,bare, --json; ways: {names}"
    )
}
