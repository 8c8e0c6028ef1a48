//! The cases, by what they are about. Each names its clauses; the function behind it is the proof.

mod dialled;
mod finish;
mod frames;
mod hello;
mod init;
mod life;
mod packets;
mod points;
mod response;
mod streams;
mod violations;

use super::run::Case;

/// Every group.
pub(super) const GROUPS: &[&[Case]] = &[
    init::CASES,
    finish::CASES,
    packets::CASES,
    frames::CASES,
    violations::CASES,
    streams::CASES,
    life::CASES,
    dialled::CASES,
    response::CASES,
];

/// A case: name, clauses, the subject's side and variant, the function.
macro_rules! case {
    ($id:literal, $clause:literal, $body:expr) => {
        $crate::protocol::cases::case!($id, $clause, Answers, Usual, $body)
    };
    ($id:literal, $clause:literal, $side:ident, $body:expr) => {
        $crate::protocol::cases::case!($id, $clause, $side, Usual, $body)
    };
    ($id:literal, $clause:literal, $side:ident, $variant:ident, $body:expr) => {
        $crate::protocol::run::Case {
            id: $id,
            clause: $clause,
            side: $crate::protocol::run::Side::$side,
            variant: $crate::protocol::subject::Variant::$variant,
            body: $body,
        }
    };
}

pub(in crate::protocol) use case;
