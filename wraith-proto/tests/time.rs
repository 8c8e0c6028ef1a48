//! Time in which nobody called an endpoint, and peers that are gone.

#[path = "api/common.rs"]
#[expect(dead_code, reason = "shared with the tests of sessions")]
mod common;

#[path = "time/end.rs"]
mod end;
#[path = "time/jumps.rs"]
mod jumps;
#[path = "time/redial.rs"]
mod redial;
#[path = "time/storm.rs"]
mod storm;
