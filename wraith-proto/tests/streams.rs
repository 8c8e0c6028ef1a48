//! Streams and recovery between two endpoints in virtual time.

#[path = "streams/goodput.rs"]
mod goodput;
#[path = "streams/loss.rs"]
mod loss;
#[path = "streams/support.rs"]
mod support;
