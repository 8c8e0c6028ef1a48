//! The cases: one function each, in a module for each group.

mod list;
mod rx;

use std::sync::LazyLock;

use crate::case::{Case, Claim, Level};
use crate::harness::Harness;
use crate::suite::Runnable;

macro_rules! list {
    ($($group:ident { $($case:ident: $clause:literal, $level:expr;)* })*) => {
        vec![$($(Case {
            id: concat!(stringify!($group), "/", stringify!($case)),
            clause: $clause,
            level: $level,
        },)*)*]
    };
}

macro_rules! runnable {
    ($($group:ident { $($case:ident: $clause:literal, $level:expr;)* })*) => {
        vec![$($(Runnable {
            case: Case {
                id: concat!(stringify!($group), "/", stringify!($case)),
                clause: $clause,
                level: $level,
            },
            body: $group::$case::<H>,
        },)*)*]
    };
}

/// Every case, in the order of running.
pub fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| crate::__driver_cases! { list });
    &CASES
}

/// The cases of every driver.
pub(crate) fn driver<H: Harness>() -> Vec<Runnable> {
    crate::__driver_cases! { runnable }
}
