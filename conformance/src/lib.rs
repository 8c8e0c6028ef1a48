//! Proves a WRAITH driver, or a whole other implementation of the protocol, right.
//!
//! [`peer`] is a second implementation of the wire protocol, written from `docs/PROTOCOL.md` alone.

#![forbid(unsafe_code)]

pub mod peer;
