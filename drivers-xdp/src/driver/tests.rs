//! The driver from within.

mod frames;
mod looks;
