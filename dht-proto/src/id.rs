//! Ids of nodes and keys of records: 256 bits in one space, near by XOR.

use core::fmt;

/// A place in the space of ids: a node's, which is BLAKE3 of its `PeerId`, or the key of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; 32]);

impl Id {
    /// The id of the node with this public key.
    pub fn of_node(public: &[u8; 32]) -> Self {
        Self(*blake3::hash(public).as_bytes())
    }

    /// The id of these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, most significant first.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The distance of Kademlia: XOR, read as a number, most significant byte first.
    #[must_use]
    pub fn distance(&self, other: &Self) -> [u8; 32] {
        core::array::from_fn(|at| self.0[at] ^ other.0[at])
    }

    /// The 64 most significant bits. Nodes are ordered by these alone: two in a network agree in them once in 2^64 / n².
    pub(crate) const fn place(&self) -> Place {
        let [first @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = self.0;
        Place(u64::from_be_bytes(first))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The upper 64 bits of an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place(pub(crate) u64);

/// Buckets of a table: one for each number of leading bits that two places share, below 64.
pub(crate) const BUCKETS: usize = 64;

impl Place {
    pub(crate) const fn distance(self, other: Self) -> u64 {
        self.0 ^ other.0
    }

    /// The bucket of `other` in the table of `self`; `None` for its own place.
    pub(crate) const fn bucket(self, other: Self) -> Option<usize> {
        let shared = self.distance(other).leading_zeros() as usize;
        if shared < BUCKETS { Some(shared) } else { None }
    }

    /// A place in a bucket of `self`, of which `random` chooses one.
    pub(crate) const fn in_bucket(self, bucket: usize, random: u64) -> Self {
        let bit = (1 << (BUCKETS - 1)) >> bucket;
        // Above the bit as here, the bit differs, below it anything.
        Self(((self.0 ^ bit) & !(bit - 1)) | (random & (bit - 1)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_node_s_id_is_the_hash_of_its_key() {
        assert_eq!(Id::of_node(&[0; 32]).as_bytes(), blake3::hash(&[0; 32]).as_bytes());
        assert_ne!(Id::of_node(&[0; 32]), Id::of_node(&[1; 32]));
    }

    #[test]
    fn the_distance_is_the_difference_of_the_bits() {
        let mut far = [0; 32];
        far[0] = 0x80;
        let (origin, far) = (Id::from_bytes([0; 32]), Id::from_bytes(far));
        assert_eq!(origin.distance(&far)[0], 0x80);
        assert_eq!(origin.distance(&origin), [0; 32]);
        assert_eq!(origin.place().bucket(far.place()), Some(0));
        assert_eq!(origin.place().bucket(Place(1)), Some(63));
        assert_eq!(origin.place().bucket(Place(0)), None);
    }

    proptest! {
        #[test]
        fn a_random_place_of_a_bucket_is_in_it(own: u64, bucket in 0..BUCKETS, random: u64) {
            let own = Place(own);
            prop_assert_eq!(own.bucket(own.in_bucket(bucket, random)), Some(bucket));
        }

        #[test]
        fn places_are_ordered_as_the_ids_are(a: [u8; 32], b: [u8; 32], target: [u8; 32]) {
            let [a, b, target] = [a, b, target].map(Id::from_bytes);
            let places = a.place().distance(target.place()).cmp(&b.place().distance(target.place()));
            prop_assert_eq!(places, a.distance(&target).cmp(&b.distance(&target)));
        }
    }
}
