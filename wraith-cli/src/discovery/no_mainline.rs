//! `--discovery mainline` in a build without it, which [`super::Options::check`] refuses.

use std::net::Ipv4Addr;

use super::{Find, Publish, Subject};
use crate::failure::failed;
use crate::output::Output;

pub(super) const IS_BUILT: bool = false;

pub(super) fn finder(_: Output, _: Ipv4Addr, _: &[String], _: Subject) -> Find {
    Box::new(|_| Err(failed(super::NOT_BUILT)))
}

pub(super) fn publisher(_: Ipv4Addr, _: u16, _: &[String], _: Subject) -> Publish {
    Box::new(|_| Err(failed(super::NOT_BUILT)))
}
