//! Protocol cases: whether an implementation keeps to the clauses of `docs/PROTOCOL.md`, seen from the wire.
//!
//! A [`Case`] exchanges datagrams with a [`Subject`] by means of [`peer`](crate::peer) and judges its reactions: the right
//! answer, silence, or CLOSE with the right code. Subjects come from a [`Target`]: [`Core`] is this repository's core in
//! virtual time, [`Live`] a process over UDP. [`protocol_suite!`](crate::protocol_suite) writes a test for each case.

mod bench;
pub(crate) mod cases;
mod live;
mod memory;
mod run;
mod subject;
mod talk;

pub use cases::cases;
pub use live::Live;
pub use memory::Core;
#[doc(hidden)]
pub use run::check;
pub use run::{Case, Report, Rule, run, run_case, verdicts};
pub(crate) use run::{check_one, judge};
pub use subject::{Door, Side, Subject, Target, Variant, Wish};
