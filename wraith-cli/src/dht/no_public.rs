//! `--discovery mainline` of the commands of the DHT in a build without it.

use super::args::{DhtAnnounce, DhtFind, DhtGet, DhtPut};
use crate::args::Common;
use crate::failure::Result;
use crate::output::Output;
use crate::stop::Stop;

pub(super) fn put(common: &Common, args: &DhtPut, _: &Stop) -> Result<()> {
    args.ask.discovery.check(common.bind)
}

pub(super) fn get(common: &Common, _: Output, args: &DhtGet, _: &Stop) -> Result<()> {
    args.ask.discovery.check(common.bind)
}

pub(super) fn announce(common: &Common, args: &DhtAnnounce, _: &Stop) -> Result<()> {
    args.ask.discovery.check(common.bind)
}

pub(super) fn find(common: &Common, args: &DhtFind, _: &Stop) -> Result<()> {
    args.ask.discovery.check(common.bind)
}
