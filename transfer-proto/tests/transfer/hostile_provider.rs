//! Providers that lie, against a fetcher.

use crate::harness::{TOKEN, content, control_of, each_message, encoded};
use proptest::prelude::*;
use wraith_transfer_proto::{
    AskError, CHUNK, Code, DELIVERY_HEADER, DeliveryHeader, EndReason, FetchEvent, FetchId, FetchLimits,
    Fetcher, Hash, Kind, ListId, MAX_SIZE, Message, Request, StreamError, Tree, Violation,
};

/// A fetcher and one source whose words the test writes.
struct Victim {
    fetcher: Fetcher<u8, u32>,
    fetch: FetchId,
    tree: Tree,
    bytes: Vec<u8>,
}

impl Victim {
    /// Has asked, and got no answer.
    fn asking(size: usize) -> Self {
        let bytes = content(size, size as u64);
        let tree = Tree::of(&bytes).unwrap();
        Self::asking_for(Request::new(Kind::File, tree.hash()), tree, bytes)
    }

    fn asking_for(request: Request, tree: Tree, bytes: Vec<u8>) -> Self {
        let mut fetcher = Fetcher::new(FetchLimits::default());
        let fetch = fetcher.fetch(request);
        fetcher.add_source(0);
        fetcher.ask(fetch, 0, TOKEN).unwrap();
        control_of(&mut fetcher, 0);
        Self { fetcher, fetch, tree, bytes }
    }

    /// Has an honest offer and wants its chunks.
    fn wanting(size: usize) -> Self {
        let mut victim = Self::asking(size);
        assert_eq!(victim.offer(), Ok(()));
        victim.wants();
        while victim.fetcher.poll_event().is_some() {}
        victim
    }

    fn says(&mut self, message: &Message<'_>) -> Result<(), Violation> {
        self.fetcher.handle_control(0, &encoded(message))
    }

    fn offer(&mut self) -> Result<(), Violation> {
        let (size, top) = (self.tree.size(), self.tree.top_list().to_vec());
        self.says(&Message::Offer { transfer: 0, size, complete: true, top: &top })
    }

    fn wants(&mut self) -> Vec<u64> {
        let mut wants = Vec::new();
        each_message(&control_of(&mut self.fetcher, 0), |message| {
            if let Message::Want { chunks, .. } = message {
                wants.extend(chunks.iter());
            }
        });
        wants
    }

    fn chunk(&self, chunk: u64) -> &[u8] {
        let start = chunk as usize * CHUNK;
        &self.bytes[start..self.bytes.len().min(start + CHUNK)]
    }

    /// A whole stream with the bytes of the chunk, right or not.
    fn delivers(&mut self, stream: u32, chunk: u64, bytes: &[u8]) -> Result<(), StreamError> {
        let header = DeliveryHeader { transfer: 0, len: bytes.len() as u32, chunk };
        self.fetcher.on_stream_data(0, stream, 0, &[&header.encode(), bytes].concat(), true)
    }

    fn ended(&mut self) -> Option<EndReason> {
        let mut ended = None;
        while let Some(event) = self.fetcher.poll_event() {
            if let FetchEvent::SourceEnded { why, fetch, source: 0 } = event {
                assert_eq!(fetch, self.fetch);
                assert_eq!(ended.replace(why), None);
            }
        }
        ended
    }

    fn cancelled_with(&mut self) -> Option<Code> {
        let mut cancelled = None;
        each_message(&control_of(&mut self.fetcher, 0), |message| {
            if let Message::Cancel { code, transfer: 0 } = message {
                cancelled = Some(code);
            }
        });
        cancelled
    }
}

/// PROTO §10.2, §10.8
#[test]
fn a_wrong_chunk_is_wanted_once_more_and_the_second_one_ends_the_source() {
    let mut victim = Victim::wanting(3 * CHUNK);
    let good: Vec<_> = [2, 0].map(|chunk| victim.chunk(chunk).to_vec()).into();
    assert_eq!(victim.delivers(1, 2, &good[0]), Ok(()));
    let mut wrong = good[1].clone();
    wrong[CHUNK - 1] ^= 1;
    assert_eq!(victim.delivers(2, 0, &wrong), Err(StreamError::BadChunk));
    assert_eq!(victim.wants(), [0], "wanted again");
    assert_eq!(victim.ended(), None);
    assert_eq!(victim.delivers(3, 1, &wrong), Err(StreamError::BadChunk));
    assert_eq!(victim.ended(), Some(EndReason::BadChunk));
    assert_eq!(victim.cancelled_with(), Some(Code::BAD_CHUNK));
    let ready = victim.fetcher.poll_ready().expect("the good one is kept");
    assert!(ready.chunk() == 2 && ready.data() == good[0]);
    victim.fetcher.written(ready);
    assert!(victim.fetcher.poll_ready().is_none(), "and no other");
    assert_eq!(victim.fetcher.stats().bad_chunks, 2);

    // Another source gives the rest.
    let (fetch, hash, tree) = (victim.fetch, victim.tree.hash(), victim.tree.clone());
    victim.fetcher.add_source(1);
    victim.fetcher.ask(fetch, 1, TOKEN).unwrap();
    let offer = Message::Offer { transfer: 0, size: tree.size(), complete: true, top: tree.top_list() };
    victim.fetcher.handle_control(1, &encoded(&offer)).unwrap();
    for chunk in [0, 1] {
        let bytes = victim.chunk(chunk).to_vec();
        let header = DeliveryHeader { transfer: 0, len: CHUNK as u32, chunk }.encode();
        victim.fetcher.on_stream_data(1, chunk as u32, 0, &[&header, &bytes[..]].concat(), true).unwrap();
        let ready = victim.fetcher.poll_ready().unwrap();
        assert!(ready.data() == bytes);
        victim.fetcher.written(ready);
    }
    assert_eq!(victim.fetcher.poll_event(), Some(FetchEvent::Complete { fetch }));
    victim.fetcher.confirm(fetch).unwrap();
    let mut done = Vec::new();
    each_message(&control_of(&mut victim.fetcher, 1), |message| {
        if let Message::Done { hash, .. } = message {
            done.push(hash);
        }
    });
    assert_eq!(done, [hash]);
}

/// PROTO §10.4
#[test]
fn a_wrong_list_ends_the_source_before_anything_is_wanted() {
    let mut victim = Victim::asking(3 * CHUNK);
    let mut top = victim.tree.top_list().to_vec();
    top[64] ^= 4;
    let size = victim.tree.size();
    assert_eq!(victim.says(&Message::Offer { transfer: 0, size, complete: true, top: &top }), Ok(()));
    assert_eq!(victim.ended(), Some(EndReason::BadList));
    assert_eq!(victim.cancelled_with(), Some(Code::BAD_LIST));
    assert_eq!(victim.fetcher.stats().bad_lists, 1);
    assert_eq!(victim.fetcher.progress(victim.fetch).unwrap().size, None);
}

/// PROTO §10.4
#[test]
fn a_wrong_lower_list_ends_the_source() {
    let values = (0..1500u64).map(|at| [at as u8; 32]).collect();
    let tree = Tree::from_values(1500 * CHUNK as u64, values).unwrap();
    let mut victim = Victim::asking_for(Request::new(Kind::File, tree.hash()), tree, Vec::new());
    victim.offer().unwrap();
    let mut asked = Vec::new();
    each_message(&control_of(&mut victim.fetcher, 0), |message| {
        if let Message::GetList { list, .. } = message {
            asked.push(list);
        }
    });
    assert_eq!(
        asked,
        [ListId { level: 1, index: 1 }, ListId { level: 1, index: 0 }],
        "the last chunk's first"
    );
    let (tree, fetch) = (victim.tree.clone(), victim.fetch);
    victim.fetcher.add_source(1);
    victim.fetcher.ask(fetch, 1, TOKEN).unwrap();
    let offer = Message::Offer { transfer: 0, size: tree.size(), complete: true, top: tree.top_list() };
    victim.fetcher.handle_control(1, &encoded(&offer)).unwrap();
    let good = victim.tree.list(asked[1]).unwrap().to_vec();
    assert_eq!(victim.says(&Message::List { transfer: 0, list: asked[1], values: &good }), Ok(()));
    assert_eq!(victim.wants(), [0; 0], "nothing before the last chunk");
    assert_eq!(victim.says(&Message::List { transfer: 0, list: asked[0], values: &good }), Ok(()));
    assert_eq!(victim.ended(), Some(EndReason::BadList));
    let again = Message::List { transfer: 0, list: asked[1], values: &good };
    assert_eq!(victim.says(&again), Ok(()), "late words of an ended transfer are no fault");

    // What it owed is asked of the other, and each list counts once.
    let mut again = Vec::new();
    each_message(&control_of(&mut victim.fetcher, 1), |message| {
        if let Message::GetList { list, .. } = message {
            again.push(list);
        }
    });
    assert_eq!(again, asked[..1]);
    let list = encoded(&Message::List { transfer: 0, list: again[0], values: tree.list(again[0]).unwrap() });
    assert_eq!(victim.fetcher.handle_control(1, &list), Ok(()));
    assert_eq!(victim.fetcher.handle_control(1, &list), Err(Violation::Unsolicited));
}

/// PROTO §10.16
#[test]
fn the_lists_that_a_lost_source_owed_are_asked_of_another() {
    let values = (0..1500u64).map(|at| [at as u8; 32]).collect();
    let tree = Tree::from_values(1500 * CHUNK as u64, values).unwrap();
    let mut victim = Victim::asking_for(Request::new(Kind::File, tree.hash()), tree.clone(), Vec::new());
    victim.offer().unwrap();
    victim.fetcher.add_source(1);
    victim.fetcher.ask(victim.fetch, 1, TOKEN).unwrap();
    let offer = Message::Offer { transfer: 0, size: tree.size(), complete: true, top: tree.top_list() };
    victim.fetcher.handle_control(1, &encoded(&offer)).unwrap();
    let mut asked = [Vec::new(), Vec::new()];
    for (source, asked) in asked.iter_mut().enumerate() {
        each_message(&control_of(&mut victim.fetcher, source as u8), |message| {
            if let Message::GetList { list, .. } = message {
                asked.push(list.index);
            }
        });
        victim.fetcher.remove_source(0);
    }
    assert_eq!(asked, [[1, 0], [1, 0]]);
}

/// PROTO §10.6, §10.9
#[test]
fn a_size_that_is_wrong_impossible_or_too_large_is_refused() {
    let offer = |victim: &mut Victim, size: u64, top: &[u8]| {
        victim.says(&Message::Offer { transfer: 0, size, complete: true, top })
    };
    // Another number of chunks: the list cannot match.
    let mut victim = Victim::asking(3 * CHUNK);
    let top = victim.tree.top_list().to_vec();
    offer(&mut victim, 4 * CHUNK as u64, &top).unwrap();
    assert_eq!(victim.ended(), Some(EndReason::WrongSize));
    assert_eq!(victim.cancelled_with(), Some(Code::WRONG_SIZE));

    // The same number of chunks: the last chunk cannot match.
    let mut victim = Victim::asking(3 * CHUNK);
    offer(&mut victim, 3 * CHUNK as u64 - 1, &top).unwrap();
    let last = victim.chunk(2)[..CHUNK - 1].to_vec();
    for stream in 0..2 {
        assert!(victim.wants().contains(&2));
        assert_eq!(victim.delivers(stream, 2, &last), Err(StreamError::BadChunk));
    }
    assert_eq!(victim.ended(), Some(EndReason::BadChunk));
    assert!(victim.fetcher.poll_ready().is_none());

    // Nothing, where there is something.
    let mut victim = Victim::asking(3 * CHUNK);
    offer(&mut victim, 0, &[]).unwrap();
    assert_eq!(victim.ended(), Some(EndReason::WrongSize));

    // Without end.
    let mut victim = Victim::asking(3 * CHUNK);
    offer(&mut victim, MAX_SIZE, &vec![7; 32 * 1024]).unwrap();
    assert_eq!(victim.ended(), Some(EndReason::BadList));
    for size in [MAX_SIZE + 1, 1 << 61, (1 << 62) - 1] {
        let mut victim = Victim::asking(3 * CHUNK);
        assert_eq!(offer(&mut victim, size, &vec![7; 32 * 1024]), Err(Violation::Malformed));
        assert_eq!(victim.ended(), Some(EndReason::Violation(Violation::Malformed)));
    }

    // More than the receiver takes.
    let honest = Victim::asking(3 * CHUNK);
    let request = Request { max_size: 3 * CHUNK as u64 - 1, ..Request::new(Kind::File, honest.tree.hash()) };
    let mut victim = Victim::asking_for(request, honest.tree, honest.bytes);
    victim.offer().unwrap();
    assert_eq!(victim.ended(), Some(EndReason::TooLarge));
    assert_eq!(victim.cancelled_with(), Some(Code::TOO_LARGE));
}

/// PROTO §10.9
#[test]
fn a_lie_about_the_size_gives_way_to_an_honest_source() {
    let mut victim = Victim::asking(3 * CHUNK);
    let (tree, fetch) = (victim.tree.clone(), victim.fetch);
    victim.fetcher.add_source(1);
    victim.fetcher.ask(fetch, 1, TOKEN).unwrap();
    let lie = 3 * CHUNK as u64 - 1;
    victim.says(&Message::Offer { transfer: 0, size: lie, complete: true, top: tree.top_list() }).unwrap();
    let offer = Message::Offer { transfer: 0, size: tree.size(), complete: true, top: tree.top_list() };
    victim.fetcher.handle_control(1, &encoded(&offer)).unwrap();
    assert_eq!(victim.fetcher.progress(fetch).unwrap().size, Some(lie));
    let last = victim.chunk(2)[..CHUNK - 1].to_vec();
    for stream in 0..2 {
        let _ = victim.delivers(stream, 2, &last);
    }
    assert_eq!(victim.ended(), Some(EndReason::BadChunk));
    assert_eq!(victim.fetcher.progress(fetch).unwrap().size, Some(tree.size()));
    assert!(!control_of(&mut victim.fetcher, 1).is_empty(), "the honest one is asked");
}

/// PROTO §10.9
#[test]
fn a_source_of_another_size_than_the_proven_one_is_ended() {
    let mut victim = Victim::wanting(3 * CHUNK);
    let (tree, fetch) = (victim.tree.clone(), victim.fetch);
    let offer = |size| Message::Offer { transfer: 0, size, complete: true, top: tree.top_list() };
    let late = |victim: &mut Victim, source| {
        victim.fetcher.add_source(source);
        victim.fetcher.ask(fetch, source, TOKEN).unwrap();
        victim.fetcher.handle_control(source, &encoded(&offer(3 * CHUNK as u64 - 5))).unwrap();
    };
    let wrong = |source| FetchEvent::SourceEnded { fetch, source, why: EndReason::WrongSize };
    late(&mut victim, 1);
    assert_eq!(victim.fetcher.poll_event(), None);
    let last = victim.chunk(2).to_vec();
    assert_eq!(victim.delivers(1, 2, &last), Ok(()));
    assert_eq!(victim.fetcher.poll_event(), Some(FetchEvent::SizeProven { fetch, size: tree.size() }));
    assert_eq!(victim.fetcher.poll_event(), Some(wrong(1)));
    late(&mut victim, 2);
    assert_eq!(victim.fetcher.poll_event(), Some(wrong(2)));
}

/// PROTO §10.10, §10.11
#[test]
fn a_chunk_that_was_not_asked_for_is_refused_and_costs_no_buffer() {
    let mut victim = Victim::asking(20 * CHUNK);
    let chunk = victim.chunk(0).to_vec();
    assert_eq!(victim.delivers(1, 0, &chunk), Err(StreamError::Unsolicited), "nothing was wanted yet");
    victim.offer().unwrap();
    assert_eq!(victim.wants(), [19, 0, 1, 2, 3, 4, 5, 6]);
    let far = victim.chunk(9).to_vec();
    assert_eq!(victim.delivers(2, 9, &far), Err(StreamError::Unsolicited), "not wanted now");
    assert_eq!(victim.delivers(3, 20, &far), Err(StreamError::Unsolicited), "not in the content");
    assert_eq!(victim.delivers(4, u64::MAX, &far), Err(StreamError::Unsolicited));
    let other = DeliveryHeader { transfer: 1, len: CHUNK as u32, chunk: 0 }.encode();
    assert_eq!(victim.fetcher.on_stream_data(0, 5, 0, &other, false), Err(StreamError::Unsolicited));
    assert_eq!(
        victim.fetcher.on_stream_data(9, 5, 0, &other, false),
        Err(StreamError::Unsolicited),
        "no source"
    );
    let header = DeliveryHeader { transfer: 0, len: CHUNK as u32, chunk: 0 }.encode();
    assert_eq!(victim.fetcher.on_stream_data(0, 6, 0, &header, false), Ok(()));
    assert_eq!(
        victim.fetcher.on_stream_data(0, 7, 0, &header, false),
        Err(StreamError::Unsolicited),
        "twice"
    );
    // Seven more chunks are owed: seven streams without a header, not eight.
    for stream in 10..17 {
        assert_eq!(victim.fetcher.on_stream_data(0, stream, 100, &[1], false), Ok(()));
    }
    assert_eq!(victim.fetcher.on_stream_data(0, 17, 100, &[1], false), Err(StreamError::Unsolicited));
    assert_eq!(victim.fetcher.stats().unsolicited, 8);
    assert_eq!(victim.ended(), None, "it may be late, not wrong");
}

/// PROTO §10.8, §10.11
#[test]
fn a_delivery_of_wrong_length_ends_the_source_before_hashing() {
    type Act = fn(&mut Victim) -> Result<(), StreamError>;
    let longest = (DELIVERY_HEADER + CHUNK) as u64;
    assert_eq!(longest, 1_048_592);
    let header = |len: u32| DeliveryHeader { transfer: 0, len, chunk: 1 }.encode();
    assert_eq!(header(7)[7], 7);
    let acts: [(&str, Act); 6] = [
        ("shorter than the chunk", |victim| victim.delivers(1, 1, &[0; 100])),
        ("longer than the chunk", |victim| victim.delivers(1, 1, &[0; 301])),
        ("no bytes", |victim| victim.delivers(1, 1, &[])),
        ("longer than the header says", |victim| {
            let header = DeliveryHeader { transfer: 0, len: 300, chunk: 1 }.encode();
            victim.fetcher.on_stream_data(0, 1, 0, &[&header[..], &[0; 301]].concat(), false)
        }),
        ("longer than any chunk", |victim| victim.fetcher.on_stream_data(0, 1, 1_048_592, &[0], false)),
        ("bytes behind the end", |victim| {
            victim.fetcher.on_stream_data(0, 1, 50, &[0; 50], true)?;
            victim.fetcher.on_stream_data(0, 1, 100, &[0; 50], false)
        }),
    ];
    for (name, act) in acts {
        let mut victim = Victim::wanting(CHUNK + 300);
        assert_eq!(act(&mut victim), Err(StreamError::WrongLength), "{name}");
        assert_eq!(victim.ended(), Some(EndReason::BadDelivery), "{name}");
        assert_eq!(victim.cancelled_with(), Some(Code::BAD_DELIVERY), "{name}");
        assert_eq!(
            (victim.fetcher.stats().wrong_length, victim.fetcher.stats().bad_chunks),
            (1, 0),
            "{name}"
        );
    }
}

/// PROTO §10.8
#[test]
fn a_stream_that_ends_early_is_wanted_once_more_and_the_second_one_ends_the_source() {
    let mut victim = Victim::wanting(CHUNK + 300);
    let header = DeliveryHeader { transfer: 0, len: 300, chunk: 1 }.encode();
    let short = [&header[..], &[0; 299]].concat();
    assert_eq!(victim.fetcher.on_stream_data(0, 1, 0, &short, true), Err(StreamError::Short));
    assert_eq!(victim.wants(), [1]);
    assert_eq!(victim.fetcher.on_stream_data(0, 2, 0, &short, true), Err(StreamError::Short));
    assert_eq!(victim.ended(), Some(EndReason::ShortDelivery));
    assert_eq!(victim.fetcher.stats().short, 2);
}

/// PROTO §10.8: the Cancel that resets announce may come behind all of them, but not never.
#[test]
fn a_source_may_reset_sixteen_deliveries_before_it_says_why() {
    let mut victim = Victim::wanting(CHUNK + 300);
    let header = DeliveryHeader { transfer: 0, len: 300, chunk: 1 }.encode();
    let part = [&header[..], &[0; 299]].concat();
    for stream in 0..17 {
        assert_eq!(victim.ended(), None, "{stream}");
        assert_eq!(victim.fetcher.on_stream_data(0, stream, 0, &part, false), Ok(()));
        victim.fetcher.on_stream_end(0, stream);
        victim.fetcher.on_stream_end(0, 99);
        if stream < 16 {
            assert_eq!(victim.wants(), [1]);
        }
    }
    assert_eq!(victim.ended(), Some(EndReason::ShortDelivery));
    assert_eq!(victim.fetcher.stats().short, 17, "unknown streams are none of its business");
}

/// PROTO §10.3, §10.5
#[test]
fn words_out_of_turn_close_the_session() {
    let hash: Hash = [1; 32];
    let list = ListId { level: 1, index: 0 };
    let cases: [(Message<'_>, Violation); 8] = [
        (Message::DoneAck { transfer: 0 }, Violation::Unsolicited),
        (Message::List { transfer: 0, list, values: &[0; 32] }, Violation::Unsolicited),
        (Message::Refused { transfer: 0, code: Code::BUSY }, Violation::Unsolicited),
        (Message::Refused { transfer: 1, code: Code::BUSY }, Violation::TransferNumber),
        (Message::Cancel { transfer: u32::MAX, code: Code::BUSY }, Violation::TransferNumber),
        (Message::Get { transfer: 0, kind: Kind::File, hash, token: TOKEN }, Violation::WrongSide),
        (Message::GetList { transfer: 0, list }, Violation::WrongSide),
        (Message::Done { transfer: 0, hash }, Violation::WrongSide),
    ];
    for (message, violation) in cases {
        let mut victim = Victim::wanting(CHUNK + 300);
        assert_eq!(victim.says(&message), Err(violation), "{message:?}");
        assert_eq!(victim.ended(), Some(EndReason::Violation(violation)));
        assert_eq!(victim.offer(), Ok(()), "nobody listens any more");
        assert_eq!(victim.fetcher.progress(victim.fetch).unwrap().sources, 0);
    }
    let mut victim = Victim::wanting(CHUNK + 300);
    assert_eq!(victim.offer(), Err(Violation::Unsolicited), "a second offer");
}

/// PROTO §10.7, §10.16
#[test]
fn a_refusal_and_an_incomplete_source_end_the_source_alone() {
    let mut victim = Victim::asking(300);
    victim.says(&Message::Refused { transfer: 0, code: Code::NOT_FOUND }).unwrap();
    assert_eq!(victim.ended(), Some(EndReason::Refused(Code::NOT_FOUND)));
    assert_eq!(victim.cancelled_with(), None);
    let (fetch, fetcher) = (victim.fetch, &mut victim.fetcher);
    assert_eq!(fetcher.ask(fetch, 0, TOKEN), Ok(()), "it may be asked again");
    assert_eq!(fetcher.ask(fetch, 0, TOKEN), Err(AskError::AskedAlready));
    assert_eq!(fetcher.ask(fetch, 1, TOKEN), Err(AskError::UnknownSource));
    victim.says(&Message::Offer { transfer: 1, size: 300, complete: false, top: &[] }).unwrap();
    assert_eq!(victim.ended(), Some(EndReason::Incomplete));
    for asked in 0..17 {
        let fetch = victim.fetcher.fetch(Request::new(Kind::File, [asked; 32]));
        let expected = if asked < 16 { Ok(()) } else { Err(AskError::TooMany) };
        assert_eq!(victim.fetcher.ask(fetch, 0, TOKEN), expected);
    }
    victim.fetcher.cancel(fetch, Code::STOPPED);
    assert_eq!(victim.fetcher.ask(fetch, 0, TOKEN), Err(AskError::UnknownFetch));
}

#[test]
fn a_stream_that_has_not_told_its_chunk_holds_one_buffer_not_two() {
    let mut victim = Victim::asking(20 * CHUNK);
    victim.offer().unwrap();
    assert_eq!(victim.wants().len(), 8);
    assert_eq!(victim.fetcher.on_stream_data(0, 1, 500, &[1; 100], false), Ok(()));
    let last = victim.chunk(19).to_vec();
    assert_eq!(victim.delivers(2, 19, &last), Ok(()));
    assert_eq!(victim.wants(), [0; 0], "the chunk is not written yet");
    let ready = victim.fetcher.poll_ready().unwrap();
    victim.fetcher.written(ready);
    assert_eq!(victim.wants(), [7]);
}

#[test]
fn buffers_come_back_whatever_happens_to_a_content() {
    let mut victim = Victim::wanting(20 * CHUNK);
    for round in 0..20 {
        let last = victim.chunk(19).to_vec();
        assert_eq!(
            victim.fetcher.on_stream_data(0, 100 * round, 100, &[1], false),
            Ok(()),
            "without a header"
        );
        let header = DeliveryHeader { transfer: round, len: CHUNK as u32, chunk: 19 }.encode();
        let whole = [&header[..], &last].concat();
        assert_eq!(victim.fetcher.on_stream_data(0, 100 * round + 1, 0, &whole, true), Ok(()));
        let ready = victim.fetcher.poll_ready().unwrap();
        victim.fetcher.cancel(victim.fetch, Code::STOPPED);
        victim.fetcher.written(ready);
        victim.fetch = victim.fetcher.fetch(Request::new(Kind::File, victim.tree.hash()));
        victim.fetcher.ask(victim.fetch, 0, TOKEN).unwrap();
        let (size, top) = (victim.tree.size(), victim.tree.top_list().to_vec());
        victim.wants();
        victim.says(&Message::Offer { transfer: round + 1, size, complete: true, top: &top }).unwrap();
        assert_eq!(victim.wants().len(), 8, "round {round}");
    }
}

#[derive(Clone, Debug)]
enum Act {
    Control(Vec<u8>),
    Offer(u64, bool),
    List(u8, u64),
    Cancel(u32),
    Stream { id: u32, transfer: u32, chunk: u64, len: u32, offset: u64, data: usize, fin: bool },
    End(u32),
    Write,
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..12).prop_map(Act::Control),
        (prop_oneof![Just(3 * CHUNK as u64), 0..4 * CHUNK as u64], any::<bool>())
            .prop_map(|(a, b)| Act::Offer(a, b)),
        (1u8..5, 0u64..3).prop_map(|(level, index)| Act::List(level, index)),
        (0u32..3).prop_map(Act::Cancel),
        (
            0u32..6,
            0u32..2,
            0u64..4,
            prop_oneof![Just(CHUNK as u32), any::<u32>()],
            0u64..40,
            0usize..64,
            any::<bool>()
        )
            .prop_map(|(id, transfer, chunk, len, offset, data, fin)| Act::Stream {
                id,
                transfer,
                chunk,
                len,
                offset,
                data,
                fin
            }),
        (0u32..6).prop_map(Act::End),
        Just(Act::Write),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_source_does_nothing_panics_and_nothing_wrong_is_written(acts in proptest::collection::vec(acts(), 0..40)) {
        let mut victim = Victim::asking(3 * CHUNK);
        for act in acts {
            match act {
                Act::Control(bytes) => drop(victim.fetcher.handle_control(0, &bytes)),
                Act::Offer(size, complete) => {
                    let top = if size > CHUNK as u64 { victim.tree.top_list().to_vec() } else { Vec::new() };
                    let _ = victim.says(&Message::Offer { transfer: 0, size, complete, top: &top });
                }
                Act::List(level, index) => {
                    let _ = victim.says(&Message::List { transfer: 0, list: ListId { level, index }, values: &[0; 96] });
                }
                Act::Cancel(transfer) => drop(victim.says(&Message::Cancel { transfer, code: Code(77) })),
                Act::Stream { id, transfer, chunk, len, offset, data, fin } => {
                    let header = DeliveryHeader { transfer, len, chunk }.encode();
                    let stream = [&header[..], &[5; 100]].concat();
                    let piece = &stream[offset as usize..][..data];
                    let _ = victim.fetcher.on_stream_data(0, id, offset, piece, fin);
                    let _ = victim.fetcher.on_stream_data(0, id, u64::MAX - offset, piece, fin);
                }
                Act::End(id) => victim.fetcher.on_stream_end(0, id),
                Act::Write => {
                    while let Some(ready) = victim.fetcher.poll_ready() {
                        prop_assert_eq!(ready.data(), victim.chunk(ready.chunk()));
                        victim.fetcher.written(ready);
                    }
                }
            }
            while victim.fetcher.poll_event().is_some() {}
            control_of(&mut victim.fetcher, 0);
        }
    }
}
