//! Sessions whose ends move, and attackers who pretend that they do, in virtual time.

#[path = "migration/attackers.rs"]
mod attackers;
#[path = "common/bulk.rs"]
mod bulk;
#[path = "migration/limits.rs"]
mod limits;
#[path = "migration/moves.rs"]
mod moves;
#[path = "migration/rebinding.rs"]
mod rebinding;
#[path = "migration/support.rs"]
mod support;
