//! Tables in Markdown.

use std::fmt;

/// A table under a heading.
pub(crate) struct Table {
    title: &'static str,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(title: &'static str, columns: &[&str]) -> Self {
        Self { title, columns: columns.iter().map(|&column| column.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row: its name, then the other columns.
    pub(crate) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n", self.title)?;
        writeln!(f, "| {} |", self.columns.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.columns.len()))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        Ok(())
    }
}
