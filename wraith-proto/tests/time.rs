//! Time in which nobody called an endpoint, and peers that are gone.

#[path = "api/common.rs"]
#[expect(dead_code, reason = "shared with the tests of sessions")]
mod common;

#[path = "time/redial.rs"]
mod redial;
