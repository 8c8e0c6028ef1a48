//! Cases that look at the whole process run while no other does.

use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use wraith_conformance::{Harness, Link, Memory, Options, Pair, Setup, Suite, Verdict};
use wraith_drivers::MemoryDriver;

/// Waits `LIMIT` milliseconds, while a pair is made, for another that is made beside it, and fails if there is one.
struct Jealous<const LIMIT: u64>;

impl<const LIMIT: u64> Harness for Jealous<LIMIT> {
    type Driver = MemoryDriver;

    const NAME: &'static str = "jealous";

    fn pair(link: &Link) -> Result<Pair<MemoryDriver>, Setup> {
        static HERE: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());
        let (here, changed) = &HERE;
        let mut count = here.lock().unwrap();
        *count += 1;
        changed.notify_all();
        let limit = Duration::from_millis(LIMIT);
        let (mut count, _) = changed.wait_timeout_while(count, limit, |count| *count < 2).unwrap();
        if *count >= 2 {
            return Err(Setup::Failed("beside another".to_owned()));
        }
        *count -= 1;
        drop(count);
        Memory::pair(link)
    }
}

/// The verdicts of a case that two threads run at once.
fn at_once<H: Harness>(id: &str) -> [Verdict; 2] {
    let run = || Suite::of::<H>().run_case(id, &Options::default());
    thread::scope(|scope| [scope.spawn(run), scope.spawn(run)].map(|thread| thread.join().unwrap()))
}

#[test]
fn a_case_that_counts_what_the_process_has_open_runs_alone() {
    assert_eq!(at_once::<Jealous<5>>("soak/descriptors_come_back"), [Verdict::Pass, Verdict::Pass]);
    let beside = || Verdict::Fail("no pair: beside another".to_owned());
    assert_eq!(at_once::<Jealous<20_000>>("accounting/caps_are_sane"), [beside(), beside()], "others do not");
}
