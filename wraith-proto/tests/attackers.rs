//! Active attackers: what each may do is its budget, what it must not reach is what its tests assert.
//!
//! All of them work on the same scene (`attackers/support.rs`). `WRAITH_BUDGET=full` gives them larger budgets.

#[path = "attackers/support.rs"]
mod support;

#[path = "attackers/cookie_thief.rs"]
mod cookie_thief;
#[path = "attackers/eavesdropper.rs"]
mod eavesdropper;
#[path = "attackers/finish_forger.rs"]
mod finish_forger;
#[path = "attackers/first_answerer.rs"]
mod first_answerer;
#[path = "attackers/reflector.rs"]
mod reflector;
#[path = "attackers/replayer.rs"]
mod replayer;
#[path = "attackers/splicer.rs"]
mod splicer;
#[path = "attackers/spoofer.rs"]
mod spoofer;

use wraith_sim::alloc::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();
