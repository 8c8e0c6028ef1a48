//! `dht sim`: networks of the DHT in virtual time.

mod saved;

use serde::Serialize;
use wraith_sim::dht::{Adversaries, LATENCY_MODEL, Plan, Report, run as simulate};

use super::args::DhtSim;
use crate::failure;
use crate::output::Output;

#[derive(Serialize)]
#[serde(tag = "event", rename = "dht-sim")]
struct SimEvent {
    nodes: u32,
    seed: u64,
    lookups: u32,
    mean_hops: f64,
    success: f64,
    mean_ms: f64,
    median_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    latency_model: &'static str,
    churn: f64,
    adversaries: f64,
    loss: f64,
    ipv6: f64,
    joined: u32,
    mean_contacts: f64,
    mean_copies: f64,
    estimated_nodes: u64,
    datagrams: u64,
    virtual_seconds: f64,
}

pub(crate) fn run(output: Output, sim: &DhtSim) -> failure::Result<()> {
    let plan = Plan {
        nodes: sim.nodes,
        seed: sim.seed,
        lookups: sim.lookups,
        churn: sim.churn,
        adversaries: sim.adversaries,
        loss: sim.loss,
        ipv6: sim.ipv6,
    };
    output.detail(format_args!("{} nodes join and store; this is virtual time", plan.nodes));
    let report = simulate(&plan);
    let (event, text) = (event(&plan, &report), text(&plan, &report));
    output.result(&event, &text);
    if let Some(path) = &sim.csv {
        saved::append_csv(path, &event)?;
    }
    if let Some(path) = &sim.svg {
        let title = text.lines().next().unwrap_or_default();
        saved::draw_svg(path, title, &report)?;
    }
    Ok(())
}

fn event(plan: &Plan, report: &Report) -> SimEvent {
    let Adversaries { silent, lying, flooding } = plan.adversaries;
    SimEvent {
        nodes: plan.nodes,
        seed: plan.seed,
        lookups: report.lookups,
        mean_hops: report.mean_hops(),
        success: report.success(),
        mean_ms: report.mean_ms(),
        median_ms: report.quantile_ms(0.5),
        p95_ms: report.quantile_ms(0.95),
        p99_ms: report.quantile_ms(0.99),
        latency_model: LATENCY_MODEL,
        churn: plan.churn,
        adversaries: silent + lying + flooding,
        loss: plan.loss,
        ipv6: plan.ipv6,
        joined: report.joined,
        mean_contacts: report.mean_contacts,
        mean_copies: report.mean_copies,
        estimated_nodes: report.estimated_nodes,
        datagrams: report.datagrams,
        virtual_seconds: report.time.as_secs_f64(),
    }
}

fn text(plan: &Plan, report: &Report) -> String {
    format!(
        "{} nodes, seed {}: {} of {} values found ({:.2} %)\n\
         {:.2} hops, {:.0} ms in the mean; median {:.0}, 95 % {:.0}, 99 % {:.0} ms\n\
         {:.0} contacts a node, {:.1} copies a value, {} nodes by their estimate\n\
         {} datagrams in {:.0} s; latency: {LATENCY_MODEL}",
        plan.nodes,
        plan.seed,
        report.found,
        report.lookups,
        report.success() * 100.0,
        report.mean_hops(),
        report.mean_ms(),
        report.quantile_ms(0.5),
        report.quantile_ms(0.95),
        report.quantile_ms(0.99),
        report.mean_contacts,
        report.mean_copies,
        report.estimated_nodes,
        report.datagrams,
        report.time.as_secs_f64(),
    )
}

/// Reads a share, from 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a share from 0 to 1, like 0.5".to_owned())
}

/// Reads shares of adversaries: one number for all kinds alike, or a number for each kind.
pub(crate) fn parse_adversaries(text: &str) -> Result<Adversaries, String> {
    let mut shares = Adversaries::default();
    if text.contains('=') {
        for part in text.split(',') {
            let (kind, share) = part.split_once('=').unwrap_or((part, ""));
            let share = parse_share(share)?;
            match kind {
                "silent" => shares.silent = share,
                "lying" => shares.lying = share,
                "flooding" => shares.flooding = share,
                _ => return Err("the kinds are silent, lying and flooding".to_owned()),
            }
        }
    } else {
        let each = parse_share(text)? / 3.0;
        shares = Adversaries { silent: each, lying: each, flooding: each };
    }
    if shares.silent + shares.lying + shares.flooding > 0.9 {
        return Err("leave a tenth of the nodes honest".to_owned());
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_adversaries_are_read_in_both_forms() {
        assert_eq!(parse_adversaries("0"), Ok(Adversaries::default()));
        let third = Adversaries { silent: 0.1, lying: 0.1, flooding: 0.1 };
        let read = parse_adversaries("0.3").unwrap();
        assert!((read.silent - third.silent).abs() < 1e-9 && read.silent.to_bits() == read.lying.to_bits());
        assert_eq!(parse_adversaries("lying=0.5"), Ok(Adversaries { lying: 0.5, ..Adversaries::default() }));
        assert_eq!(parse_adversaries("silent=0.1,lying=0.1,flooding=0.1"), Ok(third));
        for wrong in ["", "2", "-1", "nan", "0.95", "lying", "lying=", "lazy=0.1", "silent=0.5,lying=0.5"] {
            assert!(parse_adversaries(wrong).is_err(), "{wrong}");
        }
    }
}
