//! What a case is given.

use std::sync::Arc;

use wraith_drivers::Driver;
use wraith_sim::{Rng, alloc};

use crate::case::{Claim, Outcome, Verdict};
use crate::harness::{Link, Pair, Workshop};
use crate::options::Options;
use crate::wire::Wire;

/// The options of the run, its dice, and where wires come from.
pub(crate) struct Context<D> {
    pub(crate) options: Options,
    pub(crate) rng: Rng,
    workshop: Arc<dyn Workshop<D>>,
}

impl<D: Driver> Context<D> {
    pub(crate) fn new(options: &Options, workshop: Arc<dyn Workshop<D>>) -> Self {
        Self { options: options.clone(), rng: Rng::new(options.seed), workshop }
    }

    /// Two ends on a wire.
    pub(crate) fn wire(&self, link: Link) -> Outcome<Wire<D>> {
        Ok(Wire::new(self.pair(&link)?, self.options.patience))
    }

    /// Two ends for a case that counts for itself.
    pub(crate) fn pair(&self, link: &Link) -> Outcome<Pair<D>> {
        Ok(self.workshop.pair(link)?)
    }

    /// Longest payload that the wire of `link` carries, if it is shorter than `max_datagram`.
    pub(crate) fn path_limit(&self, link: &Link) -> Option<usize> {
        self.workshop.path_limit(link)
    }

    /// Longest datagram that must cross `link`.
    pub(crate) fn longest(&self, link: &Link) -> usize {
        usize::from(link.mtu).min(self.path_limit(link).unwrap_or(usize::MAX))
    }

    /// Two ends of a driver that makes `claim`.
    pub(crate) fn claiming(&self, claim: Claim, link: Link) -> Outcome<Wire<D>> {
        let wire = self.wire(link)?;
        if claim.is_made_by(&wire.left.driver.caps()) {
            Ok(wire)
        } else {
            Err(Verdict::NotClaimed(format!("its caps do not say {claim}")))
        }
    }

    /// A random length from 1 to `longest`.
    pub(crate) fn len(&mut self, longest: usize) -> usize {
        1 + self.rng.below(longest as u64) as usize
    }

    /// A datagram of random bytes.
    pub(crate) fn datagram(&mut self, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.rng.fill(&mut data);
        data
    }

    /// Random datagrams of these lengths.
    pub(crate) fn datagrams(&mut self, lens: impl IntoIterator<Item = usize>) -> Vec<Vec<u8>> {
        lens.into_iter().map(|len| self.datagram(len)).collect()
    }
}

/// Ends the case unless the test binary counts its allocations.
pub(crate) fn must_count() -> Outcome {
    let before = alloc::counts();
    drop(std::hint::black_box(Box::new(0_u64)));
    if alloc::counts() == before {
        let reason = "nothing counts allocations: this binary lacks counting_allocator!()";
        return Err(Verdict::Unavailable(reason.to_owned()));
    }
    Ok(())
}
