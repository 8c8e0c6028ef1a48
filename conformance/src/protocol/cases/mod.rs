//! The cases: one function each, in a module for each group.

mod dialled;
mod finish;
mod frames;
pub(crate) mod hello;
mod init;
mod life;
mod list;
mod packets;

mod rekey;
mod response;
mod streams;
mod violations;

use std::sync::LazyLock;

use super::run::Case;
use super::subject::{Side, Variant};

macro_rules! list {
    ($($group:ident { $($case:ident: $clause:literal, $side:ident, $variant:ident;)* })*) => {
        vec![$($(Case {
            id: concat!(stringify!($group), "/", stringify!($case)),
            clause: $clause,
            side: Side::$side,
            variant: Variant::$variant,
            body: $group::$case,
        },)*)*]
    };
}

/// Every case, in the order of running.
pub fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| crate::__protocol_cases! { list });
    &CASES
}
