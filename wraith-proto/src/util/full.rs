//! The one way in which a fixed container refuses.

use core::fmt;

/// Everything that the container may hold is taken; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fixed capacity is used up")
    }
}

impl core::error::Error for Full {}
