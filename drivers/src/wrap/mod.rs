//! Drivers around drivers.

mod netem;

pub use netem::Netem;
