//! The cases: one function each, in a module for each group.

mod accounting;
mod list;
mod park;
#[cfg(unix)]
mod poll;
mod proto;
mod rx;
mod soak;
mod time;
mod tx;

use std::sync::LazyLock;

#[cfg(unix)]
use wraith_drivers::Pollable;
use wraith_drivers::{Driver, Park};

use crate::case::{Case, Claim, Level};
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
            body: $group::$case::<D>,
        },)*)*]
    };
}

/// Every case, in the order of running.
pub fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let driver: Vec<Case> = crate::__driver_cases! { list };
        let park = crate::__park_cases! { list };
        let pollable = crate::__pollable_cases! { list };
        [driver, park, pollable].concat()
    });
    &CASES
}

/// The cases of every driver.
pub(crate) fn driver<D: Driver>() -> Vec<Runnable<D>> {
    crate::__driver_cases! { runnable }
}

/// The cases of drivers that park a thread.
pub(crate) fn park<D: Park + Send>() -> Vec<Runnable<D>> {
    crate::__park_cases! { runnable }
}

/// The cases of drivers that nest in another loop.
#[cfg(unix)]
pub(crate) fn pollable<D: Pollable>() -> Vec<Runnable<D>> {
    crate::__pollable_cases! { runnable }
}
