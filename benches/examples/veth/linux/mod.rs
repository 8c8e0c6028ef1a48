//! The comparison itself.

mod bare;
mod encrypted;
mod meter;
mod plan;
mod table;
mod way;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use wraith_drivers::{Mode, Park};
use wraith_drivers_xdp::veth::Veth;

use meter::{Meter, Seen};
use plan::{Load, Plan};
use table::{Row, Run};
use way::Way;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Before it is counted: the congestion window opens, and caches fill.
const WARM_UP: Duration = Duration::from_millis(300);
/// Behind it: what is on its way arrives.
const DRAIN: Duration = Duration::from_millis(200);
/// How often an end looks up that has nothing to do.
const LOOK: Duration = Duration::from_millis(50);

/// What runs on a host with a driver.
trait Job: Send + 'static {
    type Output: Send + 'static;

    fn run<D: Park>(self, driver: D) -> Result<Self::Output>;
}

pub(super) fn main() -> Result<()> {
    let plan = Plan::from_arguments(std::env::args().skip(1))?;
    let mut rows = plan.rows();
    for round in 0..=plan.runs {
        let name = if round == 0 { "warm-up".to_owned() } else { format!("round {round} of {}", plan.runs) };
        eprintln!("{name}");
        let mut order: Vec<&mut Row> = rows.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for row in order {
            let measured = run(row.way, row.load, row.size, plan.duration);
            let (run, mode) = measured.map_err(|error| format!("{}: {error}", row.way.name))?;
            row.mode = Some(mode);
            if round > 0 {
                row.runs.push(run);
            }
        }
    }
    if plan.json {
        table::print_json(&rows);
    } else {
        table::print_markdown(&plan, &rows);
    }
    Ok(())
}

/// One run on a pair of devices of its own.
fn run(way: Way, load: Load, size: u16, duration: Duration) -> Result<(Run, Mode)> {
    let veth = Veth::new(&way.veth()).map_err(|error| format!("two hosts of its own take root: {error}"))?;
    let meter = Arc::new(Meter::default());
    let ((sent, mode), (received, _)) = thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let (right, there) = (veth.right(), Arc::clone(&meter));
        let receiver = scope.spawn(move || match load {
            Load::Encrypted => way.run(right, encrypted::Receive { meter: there, ready }),
            Load::Bare => way.run(right, bare::Receive { meter: there, ready }),
        });
        let sent = is_ready.recv().map(|to: SocketAddr| {
            let meter = Arc::clone(&meter);
            match load {
                Load::Encrypted => way.run(veth.left(), encrypted::Send { meter, to, size, duration }),
                Load::Bare => way.run(veth.left(), bare::Send { meter, to, size, duration }),
            }
        });
        meter.finish();
        let received = receiver.join().expect("the receiver does not panic")?;
        Ok::<_, Box<dyn Error + Send + Sync>>((sent??, received))
    })?;
    Ok((Run::new(size, &sent, &received), mode))
}

/// What an end measured, and how its driver worked.
type Measured = (Seen, Mode);
