//! Streams and recovery between two endpoints in virtual time.

#[path = "streams/by_hand.rs"]
mod by_hand;
#[path = "streams/credit.rs"]
mod credit;
#[path = "streams/exhaustion.rs"]
mod exhaustion;
#[path = "streams/fairness.rs"]
mod fairness;
#[path = "streams/goodput.rs"]
mod goodput;
#[path = "streams/life.rs"]
mod life;
#[path = "streams/loss.rs"]
mod loss;
#[path = "streams/model.rs"]
mod model;
#[path = "streams/recovery.rs"]
mod recovery;
#[path = "streams/refusal.rs"]
mod refusal;
#[path = "streams/rekey.rs"]
mod rekey;
#[path = "streams/sessions.rs"]
mod sessions;
#[path = "streams/support.rs"]
mod support;
