//! What is kept of a simulation: a line in a table, and a picture.

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

use plotters::prelude::*;
use serde::Serialize;
use wraith_sim::dht::Report;

use crate::failure::{Result, failed};

/// Adds `row` to the table in the file, behind a line with the names of its fields if the file is new or empty.
pub(super) fn append_csv(path: &Path, row: &impl Serialize) -> Result<()> {
    let append = || -> std::result::Result<(), Box<dyn Error>> {
        let file = File::options().create(true).append(true).open(path)?;
        let has_headers = file.metadata()?.len() == 0;
        let mut writer = csv::WriterBuilder::new().has_headers(has_headers).from_writer(file);
        writer.serialize(row)?;
        Ok(writer.flush()?)
    };
    append().map_err(|error| cannot_write(path, &*error))
}

/// Draws how the times and the steps of the lookups of `report` are distributed.
pub(super) fn draw_svg(path: &Path, title: &str, report: &Report) -> Result<()> {
    let mut svg = String::new();
    draw(&mut svg, title, report).map_err(|error| cannot_write(path, &*error))?;
    fs::write(path, svg).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &dyn Error) -> crate::failure::Failure {
    failed(format!("cannot write {}: {error}; give a file in a folder that exists", path.display()))
}

/// Milliseconds of a bar.
const BAR: u32 = 10;

fn draw(svg: &mut String, title: &str, report: &Report) -> std::result::Result<(), Box<dyn Error>> {
    let area = SVGBackend::with_string(svg, (900, 400)).into_drawing_area();
    area.fill(&WHITE)?;
    let (times, hops) = area.titled(title, ("sans-serif", 18))?.split_horizontally(540);
    let millis = report.times.iter().map(|time| (time.as_millis() as u32) / BAR);
    bars(&times, &format!("ms, {BAR} a bar"), BAR, &count(millis))?;
    bars(&hops, "hops", 1, &count(report.hops.iter().map(|&hops| u32::from(hops))))?;
    area.present()?;
    Ok(())
}

/// How many there are of each number.
fn count(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut counts = Vec::new();
    for number in numbers {
        let number = number as usize;
        counts.resize(counts.len().max(number + 1), 0);
        counts[number] += 1;
    }
    counts
}

/// A bar for each count; `width` is what one stands for.
fn bars<DB: DrawingBackend>(
    area: &DrawingArea<DB, plotters::coord::Shift>,
    label: &str,
    width: u32,
    counts: &[u32],
) -> std::result::Result<(), Box<dyn Error>>
where
    DB::ErrorType: 'static,
{
    let right = (counts.len().max(1) as u32) * width;
    let top = counts.iter().max().map_or(1, |&most| most.max(1));
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0..right, 0..top)?;
    chart.configure_mesh().disable_x_mesh().x_desc(label).y_desc("lookups").draw()?;
    chart.draw_series(counts.iter().zip(0..).map(|(&count, at)| {
        let mut bar = Rectangle::new([(at * width, 0), ((at + 1) * width, count)], BLUE.mix(0.6).filled());
        bar.set_margin(0, 0, 1, 1);
        bar
    }))?;
    Ok(())
}
