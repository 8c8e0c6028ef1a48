//! Sessions from the outside: two and more endpoints in virtual time, by the public interface alone.

#[path = "api/common.rs"]
mod common;

#[path = "api/close.rs"]
mod close;
#[path = "api/crossing.rs"]
mod crossing;
#[path = "api/datagrams.rs"]
mod datagrams;
#[path = "api/flood.rs"]
mod flood;
#[path = "api/handshake.rs"]
mod handshake;
#[path = "api/identity.rs"]
mod identity;
#[path = "api/ids.rs"]
mod ids;
#[path = "api/loss.rs"]
mod loss;
#[path = "api/observer.rs"]
mod observer;
#[path = "api/policy.rs"]
mod policy;
#[path = "api/suites.rs"]
mod suites;
#[path = "api/tampering.rs"]
mod tampering;
#[path = "api/versions.rs"]
mod versions;
