//! A provider and a fetcher in one process, honest and hostile.

#[path = "transfer/exchange.rs"]
mod exchange;
#[path = "transfer/harness.rs"]
mod harness;
#[path = "transfer/hostile_provider.rs"]
mod hostile_provider;
#[path = "transfer/hostile_receiver.rs"]
mod hostile_receiver;
