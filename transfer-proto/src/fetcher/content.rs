//! What a fetcher knows of one content: the tree, what is missing, and who owes what.

use super::{ReadyChunk, Request};
use crate::chunk_set::ChunkSet;
use crate::tree::{Expected, ListId, TreeError, TreeVerifier};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

#[derive(Debug)]
pub(super) struct Content<S> {
    pub(super) request: Request,
    /// Stands on the claimed size.
    pub(super) verifier: Option<TreeVerifier>,
    /// The last chunk was verified.
    pub(super) proven: bool,
    /// Chunks that are neither wanted, verified nor written.
    pub(super) missing: ChunkSet,
    pub(super) have: ChunkSet,
    pub(super) wanted: Vec<Wanted<S>>,
    /// Lists asked for, and of whom.
    pub(super) lists: Vec<(ListId, S)>,
    /// Verified chunks that the caller has not taken.
    pub(super) ready: VecDeque<ReadyChunk>,
    /// Chunks that the caller writes.
    pub(super) writing: usize,
    pub(super) verified: u64,
    pub(super) written: u64,
    pub(super) complete: bool,
    pub(super) end: End,
}

/// Whether a content is stored, and who knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It is not stored.
    Open,
    /// The caller has confirmed it.
    Confirmed,
    /// A source knows.
    Acknowledged,
}

/// A chunk that a source owes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<S> {
    pub(super) chunk: u64,
    /// Kept here, so that the list may fall out meanwhile.
    pub(super) expected: Expected,
    pub(super) source: S,
    /// Its stream has begun: a second one is not wanted.
    pub(super) arriving: bool,
}

impl<S: Copy + Eq> Content<S> {
    pub(super) fn new(request: Request) -> Self {
        Self {
            request,
            verifier: None,
            proven: false,
            missing: ChunkSet::new(),
            have: ChunkSet::new(),
            wanted: Vec::new(),
            lists: Vec::new(),
            ready: VecDeque::new(),
            writing: 0,
            verified: 0,
            written: 0,
            complete: false,
            end: End::Open,
        }
    }

    /// Goes on under the claim that the content has `size` bytes.
    pub(super) fn claim(&mut self, size: u64, lists: usize) -> Result<(), TreeError> {
        let verifier = TreeVerifier::new(self.request.hash, size, lists)?;
        let chunks = verifier.chunks();
        self.missing = ChunkSet::new();
        self.missing.insert(0..chunks);
        // Only the hash of nothing passes with size 0, which proves it.
        self.proven = size == 0;
        if let Some(resume) = &self.request.resume {
            self.proven = true;
            for range in resume.have.ranges() {
                let range = range.start..range.end.min(chunks);
                self.missing.remove(range.clone());
                self.have.insert(range.clone());
                self.written += range.map(|chunk| verifier.chunk_len(chunk) as u64).sum::<u64>();
            }
        }
        self.verifier = Some(verifier);
        Ok(())
    }

    /// Forgets an unproven claim; the chunks that were verified under it come back.
    pub(super) fn drop_claim(&mut self) -> impl Iterator<Item = ReadyChunk> + '_ {
        self.verifier = None;
        self.missing = ChunkSet::new();
        self.wanted.clear();
        self.lists.clear();
        self.verified = 0;
        self.ready.drain(..)
    }

    /// What `source` owes is missing again.
    pub(super) fn give_back(&mut self, source: S) {
        for wanted in self.wanted.iter().filter(|wanted| wanted.source == source) {
            self.missing.insert(wanted.chunk..wanted.chunk + 1);
        }
        self.wanted.retain(|wanted| wanted.source != source);
        self.lists.retain(|(_, asked)| *asked != source);
    }

    /// Takes a wanted chunk out of the list of debts.
    pub(super) fn settle(&mut self, source: S, chunk: u64) -> Option<Wanted<S>> {
        let place = self.wanted.iter().position(|wanted| wanted.source == source && wanted.chunk == chunk)?;
        Some(self.wanted.swap_remove(place))
    }

    pub(super) fn size(&self) -> Option<u64> {
        self.verifier.as_ref().map(TreeVerifier::size)
    }

    pub(super) fn last_chunk(&self) -> Option<u64> {
        self.verifier.as_ref()?.chunks().checked_sub(1)
    }

    pub(super) fn is_whole(&self) -> bool {
        let chunks = self.verifier.as_ref().map(TreeVerifier::chunks);
        self.proven && chunks == Some(self.have.len())
    }
}
