use super::*;
use alloc::vec;
use alloc::vec::Vec;

const MIB: u64 = CHUNK as u64;

/// Bytes that differ from place to place.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

fn verifier(tree: &Tree) -> TreeVerifier {
    let mut verifier = TreeVerifier::new(tree.hash(), tree.size(), 12).unwrap();
    if let Some(top) = verifier.top_list() {
        verifier.accept(top, tree.top_list()).unwrap();
    }
    verifier
}

/// `PROTO §10.4`
#[test]
fn the_content_id_is_the_plain_hash_for_every_shape_of_tree() {
    for size in [0, 1, 1024, 1025, CHUNK - 1, CHUNK, CHUNK + 1] {
        let content = bytes(size);
        assert_eq!(Tree::of(&content).unwrap().hash(), *blake3::hash(&content).as_bytes(), "{size}");
    }
    for chunks in [2, 3, 4, 5, 7] {
        for tail in [1, 1024, 1025, CHUNK - 1, CHUNK] {
            let content = bytes((chunks - 1) * CHUNK + tail);
            let tree = Tree::of(&content).unwrap();
            assert_eq!(tree.hash(), *blake3::hash(&content).as_bytes(), "{chunks} chunks, tail {tail}");
            let mut verifier = verifier(&tree);
            for (index, chunk) in content.chunks(CHUNK).enumerate() {
                assert_eq!(verifier.check(index as u64, chunk), Ok(()));
            }
        }
    }
}

/// `PROTO §10.4`
#[test]
fn pieces_of_any_length_build_the_same_tree() {
    let content = bytes(3 * CHUNK + 77);
    let whole = Tree::of(&content).unwrap();
    for piece in [1000, 65_536, CHUNK - 1, CHUNK, CHUNK + 1] {
        let mut builder = TreeBuilder::new();
        for part in content.chunks(piece) {
            builder.push(part).unwrap();
        }
        assert_eq!(builder.size(), content.len() as u64);
        assert_eq!(builder.finish(), whole);
    }
    let values =
        content.chunks(CHUNK).enumerate().map(|(index, chunk)| chunk_value(index as u64, chunk).unwrap());
    assert_eq!(Tree::from_values(content.len() as u64, values.collect()), Ok(whole));
}

/// `PROTO §10.4`
#[test]
fn two_tiers_of_lists_hang_under_the_plain_hash() {
    let zeros = vec![0; CHUNK];
    let value = |index: u64, len: usize| chunk_value(index, &zeros[..len]).unwrap();
    let values: Vec<_> = (0..2049).map(|index| value(index, CHUNK)).collect();
    let mut plain = blake3::Hasher::new();
    let mut hashed = 0;
    for (chunks, tail) in
        [(1023, CHUNK), (1024, 5), (1024, CHUNK), (1025, 1), (1025, CHUNK), (2049, 1025), (2049, CHUNK)]
    {
        while hashed < chunks - 1 {
            plain.update(&zeros);
            hashed += 1;
        }
        let mut short = values[..chunks as usize].to_vec();
        *short.last_mut().unwrap() = value(chunks - 1, tail);
        let size = (chunks - 1) * MIB + tail as u64;
        let tree = Tree::from_values(size, short.clone()).unwrap();
        let expected = *plain.clone().update(&zeros[..tail]).finalize().as_bytes();
        assert_eq!(tree.hash(), expected, "{chunks} chunks, tail {tail}");

        let mut verifier = verifier(&tree);
        for index in [chunks - 1, 0, 1023.min(chunks - 1)] {
            if let Err(list) = verifier.expected(index) {
                assert_eq!(list, ListId { level: 1, index: index / 1024 });
                verifier.accept(list, tree.list(list).unwrap()).unwrap();
            }
            assert_eq!(verifier.expected(index), Ok(Expected::Value(short[index as usize])));
        }
        assert_eq!(verifier.check(chunks - 1, &zeros[..tail]), Ok(()));
        assert_eq!(verifier.check(0, &zeros), Ok(()));
    }
}

/// `PROTO §10.4`
#[test]
fn a_list_is_asked_for_from_the_top_down_and_again_after_it_fell_out() {
    let size = (1 << 50) + (1 << 40) + 1;
    let mut verifier = TreeVerifier::new([7; 32], size, 0).unwrap();
    assert_eq!(verifier.top_list(), Some(ListId { level: 4, index: 0 }));
    assert_eq!(verifier.expected(0), Err(ListId { level: 4, index: 0 }));
    assert_eq!(ListId { level: 4, index: 0 }.len(size), 2);
    assert_eq!(ListId { level: 3, index: 0 }.len(size), 1024);
    assert_eq!(ListId { level: 3, index: 1 }.len(size), 2);
    assert_eq!(ListId { level: 2, index: 1025 }.len(size), 1);
    assert_eq!(ListId { level: 1, index: 1025 * 1024 }.len(size), 1);
    assert_eq!(ListId { level: 1, index: 1025 * 1024 + 1 }.len(size), 0);
    assert_eq!(ListId { level: 1, index: u64::MAX }.len(size), 0);
    assert_eq!(ListId { level: 5, index: 0 }.len(size), 0);

    // 14 GiB of the same chunk values: places for 12 lists, one of them the top one.
    let values = vec![[9; 32]; 14 * 1024];
    let tree = Tree::from_values(14 << 30, values).unwrap();
    let mut verifier = self::verifier(&tree);
    for index in 0..14 {
        let list = ListId { level: 1, index };
        assert_eq!(verifier.expected(index * 1024), Err(list));
        verifier.accept(list, tree.list(list).unwrap()).unwrap();
    }
    for index in 0..14 {
        let fell_out = index < 3;
        let expected = if fell_out { Err(ListId { level: 1, index }) } else { Ok(Expected::Value([9; 32])) };
        assert_eq!(verifier.expected(index * 1024), expected, "the oldest fall out");
    }
}

/// `PROTO §10.4`
#[test]
fn a_list_counts_only_under_its_parent() {
    let tree = Tree::from_values(2 << 30, (0..2048u64).map(|at| [(at % 251) as u8; 32]).collect()).unwrap();
    let mut verifier = TreeVerifier::new(tree.hash(), tree.size(), 12).unwrap();
    let (top, lower) = (ListId { level: 2, index: 0 }, ListId { level: 1, index: 1 });
    let good = tree.list(lower).unwrap();
    assert_eq!(verifier.accept(lower, good), Err(TreeError::Missing));
    let mut wrong = tree.top_list().to_vec();
    wrong[40] ^= 1;
    assert_eq!(verifier.accept(top, &wrong), Err(TreeError::WrongList));
    assert_eq!(verifier.accept(top, &wrong[..32]), Err(TreeError::WrongLength));
    assert_eq!(verifier.accept(top, tree.top_list()), Ok(()));
    for at in [0, good.len() - 1] {
        let mut wrong = good.to_vec();
        wrong[at] ^= 0x80;
        assert_eq!(verifier.accept(lower, &wrong), Err(TreeError::WrongList));
    }
    assert_eq!(
        verifier.accept(ListId { level: 1, index: 0 }, good),
        Err(TreeError::WrongList),
        "another's place"
    );
    assert_eq!(verifier.accept(lower, &good[1..]), Err(TreeError::WrongLength));
    assert_eq!(verifier.accept(lower, &[]), Err(TreeError::WrongLength));
    for id in [ListId { level: 3, index: 0 }, ListId { level: 1, index: 2 }, ListId { level: 0, index: 0 }] {
        assert_eq!(verifier.accept(id, good), Err(TreeError::OutOfRange));
        assert_eq!(tree.list(id), None);
    }
    assert_eq!(verifier.accept(lower, good), Ok(()));
    assert_eq!(verifier.accept(lower, good), Ok(()), "twice is harmless");
}

/// `PROTO §10.2, §10.8`
#[test]
fn a_chunk_of_a_length_that_does_not_belong_there_is_refused_before_hashing() {
    let content = bytes(2 * CHUNK + 10);
    let tree = Tree::of(&content).unwrap();
    let mut verifier = verifier(&tree);
    assert_eq!(verifier.check(2, &[]), Err(TreeError::WrongLength));
    assert_eq!(verifier.check(2, &content[..11]), Err(TreeError::WrongLength));
    assert_eq!(verifier.check(0, &content[..CHUNK - 1]), Err(TreeError::WrongLength));
    assert_eq!(verifier.check(0, &content[..=CHUNK]), Err(TreeError::WrongLength));
    assert_eq!(verifier.check(3, &content[..10]), Err(TreeError::OutOfRange));
    assert_eq!(verifier.check(u64::MAX, &content[..10]), Err(TreeError::OutOfRange));
    assert_eq!(verifier.check(1, &content[..CHUNK]), Err(TreeError::WrongChunk), "another's place");
    assert_eq!(chunk_value(0, &[]), Err(TreeError::WrongLength));
    assert_eq!(chunk_value(0, &content[..=CHUNK]), Err(TreeError::WrongLength));
    assert_eq!(chunk_value(chunk_count(MAX_SIZE), &[1]), Err(TreeError::OutOfRange));
    assert!(chunk_value(chunk_count(MAX_SIZE) - 1, &[1]).is_ok());
}

/// `PROTO §10.9`
#[test]
fn the_last_chunk_proves_the_size() {
    let content = bytes(4 * CHUNK);
    let tree = Tree::of(&content).unwrap();
    // The right number of chunks, another tail.
    let mut shorter = TreeVerifier::new(tree.hash(), 4 * MIB - 1, 12).unwrap();
    shorter.accept(ListId { level: 1, index: 0 }, tree.top_list()).unwrap();
    assert_eq!(shorter.check(3, &content[3 * CHUNK..4 * CHUNK - 1]), Err(TreeError::WrongChunk));
    // Inner nodes dressed as chunks: the list is good, the last chunk cannot be.
    let values = as_values(tree.top_list()).unwrap();
    let pairs = [subtree_value(&values[..2]).unwrap(), subtree_value(&values[2..]).unwrap()];
    let mut halved = TreeVerifier::new(tree.hash(), 2 * MIB, 12).unwrap();
    halved.accept(ListId { level: 1, index: 0 }, pairs.as_flattened()).unwrap();
    assert_eq!(halved.check(1, &content[2 * CHUNK..3 * CHUNK]), Err(TreeError::WrongChunk));
    // More chunks than there are: the list cannot be good.
    let mut longer = TreeVerifier::new(tree.hash(), 5 * MIB, 12).unwrap();
    let five = [values, &[[0; 32]]].concat();
    assert_eq!(longer.accept(ListId { level: 1, index: 0 }, five.as_flattened()), Err(TreeError::WrongList));
    // Content of one chunk: a root, never a chaining value.
    let one = bytes(100);
    let mut small = TreeVerifier::new(*blake3::hash(&one).as_bytes(), 100, 12).unwrap();
    assert_eq!(small.check(0, &one), Ok(()));
    assert_eq!(small.check(0, &bytes(99)), Err(TreeError::WrongLength));
}

/// `PROTO §10.6`, `PROTO §10.9`
#[test]
fn impossible_sizes_are_refused() {
    let nothing = *blake3::hash(&[]).as_bytes();
    assert!(TreeVerifier::new(nothing, 0, 12).is_ok());
    assert_eq!(TreeVerifier::new([1; 32], 0, 12).err(), Some(TreeError::WrongSize));
    assert!(TreeVerifier::new([1; 32], MAX_SIZE, 12).is_ok());
    for size in [MAX_SIZE + 1, 1 << 63, u64::MAX] {
        assert_eq!(TreeVerifier::new([1; 32], size, 12).err(), Some(TreeError::TooLarge));
    }
    assert_eq!(Tree::from_values(MIB, vec![[0; 32]]).err(), Some(TreeError::WrongSize));
    assert_eq!(Tree::from_values(MIB + 1, vec![[0; 32]]).err(), Some(TreeError::WrongLength));
    assert_eq!(Tree::from_values(MAX_SIZE + 1, Vec::new()).err(), Some(TreeError::TooLarge));
    assert_eq!(chunk_len(0, 0), 0);
    assert_eq!((chunk_len(1, MIB + 1), chunk_len(1, MIB), chunk_len(0, MIB)), (1, 0, CHUNK));
    assert_eq!(
        (top_level(MIB), top_level(MIB + 1), top_level(1 << 30), top_level((1 << 30) + 1)),
        (0, 1, 1, 2)
    );
    assert_eq!((top_level(1 << 40), top_level(1 << 50), top_level(MAX_SIZE)), (2, 3, 4));
}
