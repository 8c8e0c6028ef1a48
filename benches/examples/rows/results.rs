//! What criterion has saved.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::units::time;

/// Medians in nanoseconds, by the full names of benchmarks.
#[derive(Default)]
pub(crate) struct Results(BTreeMap<String, f64>);

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
}

#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

impl Results {
    /// The latest result of every benchmark.
    pub(crate) fn load() -> Result<Self, Box<dyn Error>> {
        let folder = folder().ok_or("no folder of results")?;
        let mut results = Self::default();
        results
            .collect(&folder)
            .map_err(|error| format!("{}: {error}; run `cargo bench`", folder.display()))?;
        Ok(results)
    }

    /// The median of a benchmark, in nanoseconds.
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// The median of a benchmark, for people.
    pub(crate) fn time(&self, name: &str) -> String {
        self.get(name).map_or_else(missing, time)
    }

    /// The benchmarks whose names begin with `prefix`, which is cut off.
    pub(crate) fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().filter_map(move |(name, &nanos)| Some((name.strip_prefix(prefix)?, nanos)))
    }

    fn collect(&mut self, folder: &Path) -> Result<(), Box<dyn Error>> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if !path.is_dir() {
                continue;
            }
            let file = path.join("benchmark.json");
            if !path.ends_with("new") {
                self.collect(&path)?;
            } else if file.exists() {
                let benchmark: Benchmark = serde_json::from_slice(&fs::read(file)?)?;
                let estimates: Estimates = serde_json::from_slice(&fs::read(path.join("estimates.json"))?)?;
                self.0.insert(benchmark.full_id, estimates.median.point_estimate);
            }
        }
        Ok(())
    }
}

/// What stands for a figure that there is none of.
pub(crate) fn missing() -> String {
    "–".to_owned()
}

/// Where criterion saves: beside the profile that this example was built in.
fn folder() -> Option<PathBuf> {
    if let Some(home) = std::env::var_os("CRITERION_HOME") {
        return Some(home.into());
    }
    Some(std::env::current_exe().ok()?.ancestors().nth(3)?.join("criterion"))
}
