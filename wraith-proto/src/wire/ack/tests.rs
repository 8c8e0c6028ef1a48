use super::*;
use proptest::prelude::*;
use std::{vec, vec::Vec};

fn parse(fields: &[u8], ecn: bool) -> Result<Ack<'_>, Malformed> {
    let mut reader = Reader::new(fields);
    let ack = Ack::parse(&mut reader, ecn)?;
    if reader.is_empty() { Ok(ack) } else { Err(Malformed) }
}

fn emit(
    ranges: &[(u64, u64)],
    delay_micros: u64,
    ecn: Option<EcnCounts>,
    space: usize,
) -> Result<(Vec<u8>, usize), Full> {
    let mut buf = vec![0; space];
    let mut w = Writer::new(&mut buf);
    let count = AckRepr { ranges: ranges.iter().copied(), delay_micros, ecn }.emit(&mut w)?;
    Ok((w.written().to_vec(), count))
}

/// Ranges newest first from pairs of (gap, size), both less one, counted down from 2^40.
fn descending(steps: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut next = 1 << 40;
    let range = |(gap, size): &(u64, u64)| {
        let high = next - gap;
        let low = high - size;
        next = low - 2;
        (low, high)
    };
    steps.iter().map(range).collect()
}

/// `PROTO §6.4`: the fields in their order, each gap and size less one.
#[test]
fn a_known_frame_has_these_bytes() {
    let ecn = EcnCounts { ect0: 7, ect1: 0, ce: 1 };
    let (bytes, count) = emit(&[(18, 20), (10, 15), (8, 8)], 25, Some(ecn), 64).unwrap();
    assert_eq!(count, 3);
    // Between 18 and 15 lie 16 and 17: gap 1. Between 10 and 8 lies 9: gap 0.
    assert_eq!(bytes, [3, 20, 25, 2, 2, 1, 5, 0, 0, 7, 0, 1]);
    let ack = parse(&bytes[1..], true).unwrap();
    assert_eq!((ack.largest(), ack.delay_micros(), ack.ecn()), (20, 25, Some(ecn)));
    assert_eq!(ack.ranges().collect::<Vec<_>>(), [(18, 20), (10, 15), (8, 8)]);
    assert_eq!(ack.ranges().len(), 3);
}

/// `PROTO §6.4`: a range below 0 is a violation.
#[test]
fn a_range_below_0_is_malformed() {
    assert_eq!(parse(&[5, 0, 0, 5], false).unwrap().ranges().collect::<Vec<_>>(), [(0, 5)]);
    assert_eq!(parse(&[5, 0, 0, 6], false), Err(Malformed));
    // The first range is 3 to 5; the next can end at 1.
    assert_eq!(parse(&[5, 0, 1, 2, 0, 1], false).unwrap().ranges().last(), Some((0, 1)));
    assert_eq!(parse(&[5, 0, 1, 2, 0, 2], false), Err(Malformed));
    assert_eq!(parse(&[5, 0, 1, 2, 1, 0], false).unwrap().ranges().last(), Some((0, 0)));
    assert_eq!(parse(&[5, 0, 1, 2, 2, 0], false), Err(Malformed));
    assert_eq!(parse(&[1, 0, 1, 0, 0, 0], false), Err(Malformed));
    let mut wide = vec![5, 0, 1, 2];
    wide.extend(u64::MAX.to_be_bytes());
    wide.push(0);
    assert_eq!(parse(&wide, false), Err(Malformed));
}

/// `PROTO §6.4`: at most 63 further ranges.
#[test]
fn the_64th_further_range_is_malformed_and_the_65th_range_is_not_written() {
    let mut fields = vec![0x40, 200, 0, 63, 0];
    fields.extend([0; 126]);
    assert_eq!(parse(&fields, false).unwrap().ranges().len(), 64);
    fields[3] = 64 & 0x3f;
    assert_eq!(parse(&fields, false), Err(Malformed));
    let mut fields = vec![0x40, 200, 0, 0x40, 64, 0];
    fields.extend([0; 128]);
    assert_eq!(parse(&fields, false), Err(Malformed));

    let ranges: Vec<_> = (0..65).map(|i| (300 - 2 * i, 300 - 2 * i)).collect();
    assert_eq!(emit(&ranges[..64], 0, None, 1000).unwrap().1, 64);
    assert_eq!(emit(&ranges, 0, None, 1000).unwrap().1, 64);
}

#[test]
fn a_cut_list_keeps_the_newest_ranges_and_the_ecn_counts() {
    let ranges = [(90, 100), (70, 80), (0, 10)];
    let ecn = EcnCounts { ect0: 1, ect1: 2, ce: 3 };
    let whole = emit(&ranges, 0, Some(ecn), 100).unwrap().0.len();
    for space in 0..whole {
        match emit(&ranges, 0, Some(ecn), space) {
            Ok((bytes, count)) => {
                let ack = parse(&bytes[1..], true).unwrap();
                assert_eq!(ack.ranges().collect::<Vec<_>>(), ranges[..count]);
                assert_eq!(ack.ecn(), Some(ecn));
                assert!(whole - bytes.len() == 2 * (3 - count));
            }
            Err(Full) => assert!(space < whole - 4),
        }
    }
}

#[test]
fn no_ranges_write_nothing_and_touching_ones_end_the_list() {
    assert_eq!(emit(&[], 0, None, 10), Ok((vec![], 0)));
    for second in [(0, 10), (5, 9), (3, 1), (20, 30)] {
        assert_eq!(emit(&[(10, 12), second], 0, None, 10), Ok((vec![2, 12, 0, 0, 2], 1)));
    }
    assert_eq!(emit(&[(12, 10)], 0, None, 10), Err(Full));
    assert_eq!(emit(&[(0, 0)], varint::MAX + 1, None, 100), Err(Full));
}

proptest! {
    #[test]
    fn acknowledgements_come_back_and_every_truncation_is_malformed(
        steps in proptest::collection::vec((0u64..1 << 30, 0u64..1 << 30), 1..=64),
        delay in 0..=varint::MAX,
        ecn in proptest::option::of((0..=varint::MAX, 0..=varint::MAX, 0..=varint::MAX)),
    ) {
        let ranges = descending(&steps);
        let ecn = ecn.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
        let (bytes, count) = emit(&ranges, delay, ecn, 2000).unwrap();
        prop_assert_eq!(count, ranges.len());
        let ack = parse(&bytes[1..], ecn.is_some()).unwrap();
        prop_assert_eq!(ack.largest(), ranges[0].1);
        prop_assert_eq!(ack.delay_micros(), delay);
        prop_assert_eq!(ack.ecn(), ecn);
        prop_assert_eq!(ack.encoded_len(), bytes.len());
        prop_assert_eq!(ack.ranges().collect::<Vec<_>>(), ranges);
        for len in 0..bytes.len() - 1 {
            prop_assert_eq!(parse(&bytes[1..][..len], ecn.is_some()), Err(Malformed));
        }
    }

    #[test]
    fn whatever_is_accepted_has_as_many_ordered_ranges_as_it_says(
        bytes in proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..48),
        ecn: bool,
    ) {
        if let Ok(ack) = Ack::parse(&mut Reader::new(&bytes), ecn) {
            let ranges: Vec<_> = ack.ranges().collect();
            prop_assert_eq!(ranges.len(), ack.ranges().len());
            prop_assert_eq!(ranges[0].1, ack.largest());
            prop_assert!(ranges.iter().all(|(low, high)| low <= high));
            prop_assert!(ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
        }
    }
}
