//! Honest ends.

use crate::harness::{Client, Server, TOKEN, content, control_of, each_message, encoded, servers};
use wraith_transfer_proto::{
    Access, CHUNK, ChunkSet, Code, DELIVERY_HEADER, EndReason, Failure, FetchEvent, FetchLimits, Kind,
    ListId, Message, NotComplete, ProviderEvent, ProviderLimits, Request, Resume, Tree, chunk_value,
};

/// PROTO §10.2, §10.8, §10.9, §10.12
#[test]
fn a_file_arrives_whole_in_whatever_order_its_pieces_come() {
    for (seed, size) in
        [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 77, 20 * CHUNK].into_iter().enumerate()
    {
        let bytes = content(size, seed as u64);
        let (mut servers, hash) = servers(1, &bytes);
        let mut client = Client::new(FetchLimits::default(), seed as u64);
        let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
        client.run(&mut servers);
        assert!(client.bytes(fetch) == bytes, "{size}");
        let size = size as u64;
        assert_eq!(
            client.events,
            [
                FetchEvent::Offered { fetch, size },
                FetchEvent::SizeProven { fetch, size },
                FetchEvent::Complete { fetch },
                FetchEvent::Acknowledged { fetch, source: 0 },
            ]
        );
        let [
            ProviderEvent::Started { content, .. },
            ProviderEvent::Confirmed { transfer: 0, content: confirmed },
        ] = servers[0].events[..]
        else {
            panic!("{:?}", servers[0].events);
        };
        assert_eq!(content, confirmed);
        assert_eq!(client.fetcher.progress(fetch), None, "forgotten after the last acknowledgement");
        assert_eq!(client.fetcher.stats().chunks, size.div_ceil(CHUNK as u64));
    }
}

/// PROTO §10.9, §10.10
#[test]
fn the_last_chunk_comes_first_and_nothing_is_written_before_it() {
    let bytes = content(20 * CHUNK, 5);
    let (mut servers, hash) = servers(1, &bytes);
    let mut client = Client::new(FetchLimits::default(), 5);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    while client.fetcher.progress(fetch).is_some_and(|progress| !progress.proven) {
        assert!(client.files.is_empty(), "nothing before the size is proven");
        assert!(client.step(&mut servers));
    }
    client.run(&mut servers);
    let mut expected = vec![19];
    expected.extend(0..19);
    assert_eq!(servers[0].opened, expected);
}

/// PROTO §10.10
#[test]
fn a_receiver_wants_only_what_it_has_buffers_for() {
    let bytes = content(30 * CHUNK, 6);
    let (mut servers, hash) = servers(1, &bytes);
    let limits = FetchLimits { buffers: 3, ..FetchLimits::default() };
    let mut client = Client::new(limits, 6);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    loop {
        let wanted = client.fetcher.progress(fetch).map_or(0, |progress| progress.wanted);
        assert!(wanted <= 3, "{wanted}");
        if !client.step(&mut servers) {
            break;
        }
    }
    assert!(client.bytes(fetch) == bytes);
}

/// PROTO §10.10
#[test]
fn a_want_follows_each_written_chunk_at_once() {
    let bytes = content(12 * CHUNK, 7);
    let (mut servers, hash) = servers(1, &bytes);
    let mut client = Client::new(FetchLimits { buffers: 2, ..FetchLimits::default() }, 7);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    let get = control_of(&mut client.fetcher, 0);
    let offer = servers[0].exchange(0, &get).unwrap();
    client.fetcher.handle_control(0, &offer).unwrap();
    let mut wants = Vec::new();
    let control = control_of(&mut client.fetcher, 0);
    each_message(&control, |message| match message {
        Message::Want { chunks, .. } => wants.extend(chunks.iter()),
        other => panic!("{other:?}"),
    });
    assert_eq!(wants, [11, 0], "two round trips: offer, then chunks");
    servers[0].exchange(0, &control).unwrap();
    let ready = loop {
        assert!(servers[0].deliver(0, &mut client.fetcher, 0, &mut client.random));
        if let Some(ready) = client.fetcher.poll_ready() {
            break ready;
        }
    };
    assert!(control_of(&mut client.fetcher, 0).is_empty(), "its buffer is still in use");
    assert_eq!(ready.fetch(), fetch);
    client.fetcher.written(ready);
    let want = control_of(&mut client.fetcher, 0);
    each_message(&want, |message| {
        assert!(matches!(message, Message::Want { chunks, .. } if chunks.first() == 1));
    });
    assert!(!want.is_empty());
}

#[test]
fn a_buffer_may_be_taken_out_to_be_written_and_is_replaced_if_it_does_not_come_back() {
    let bytes = content(5 * CHUNK, 9);
    let (mut servers, hash) = servers(1, &bytes);
    let mut client = Client::new(FetchLimits { buffers: 2, ..FetchLimits::default() }, 9);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    let mut written = vec![Vec::new(); 5];
    let mut moved = true;
    while moved {
        let control = control_of(&mut client.fetcher, 0);
        let answer = servers[0].exchange(0, &control).unwrap();
        client.fetcher.handle_control(0, &answer).unwrap();
        moved = !control.is_empty() || servers[0].deliver(0, &mut client.fetcher, 0, &mut client.random);
        while let Some(mut ready) = client.fetcher.poll_ready() {
            let buffer = ready.take_buffer();
            assert_eq!(ready.data(), [0; 0], "its buffer is elsewhere");
            let bytes = &mut written[ready.chunk() as usize];
            *bytes = buffer.to_vec();
            if ready.chunk() % 2 == 0 {
                ready.put_buffer(buffer);
                assert!(ready.data() == *bytes);
            }
            client.fetcher.written(ready);
        }
    }
    assert!(written.concat() == bytes);
    assert_eq!(client.fetcher.progress(fetch).unwrap().written, bytes.len() as u64);
}

/// PROTO §10.10
#[test]
fn at_most_two_deliveries_are_pulled_at_a_time_in_the_order_of_the_wants() {
    let mut server = Server::new();
    let hash = server.add(content(6 * CHUNK, 8));
    server.provider.open(0).unwrap();
    let mut client = Client::new(FetchLimits::default(), 8);
    client.fetch(Request::new(Kind::File, hash), &[0]);
    for _ in 0..2 {
        let control = control_of(&mut client.fetcher, 0);
        let answer = server.exchange(0, &control).unwrap();
        client.fetcher.handle_control(0, &answer).unwrap();
    }
    let first = server.provider.next_delivery(0).unwrap();
    let second = server.provider.next_delivery(0).unwrap();
    assert_eq!((first.chunk(), second.chunk()), (5, 0));
    assert_eq!((first.offset(), first.len()), (5 * CHUNK as u64, CHUNK as u32));
    assert_eq!(server.provider.next_delivery(0), None);
    server.provider.on_pulled(0, &second);
    server.provider.on_pulled(0, &second);
    assert_eq!(server.provider.next_delivery(0).map(|delivery| delivery.chunk()), Some(1));
    assert_eq!(server.provider.next_delivery(0), None);
    assert_eq!(server.provider.delivered(0, 0), Some(0));
    server.provider.on_delivered(0, &first);
    assert_eq!(server.provider.delivered(0, 0), Some(CHUNK as u64));
    assert_eq!(server.provider.next_delivery(0).map(|delivery| delivery.chunk()), Some(2));
}

/// PROTO §10.11
#[test]
fn a_delivery_gives_its_stream_from_any_offset() {
    let bytes = content(CHUNK + 300, 9);
    let mut server = Server::new();
    let hash = server.add(bytes.clone());
    server.provider.open(0).unwrap();
    let mut client = Client::new(FetchLimits::default(), 9);
    client.fetch(Request::new(Kind::File, hash), &[0]);
    for _ in 0..2 {
        let control = control_of(&mut client.fetcher, 0);
        let answer = server.exchange(0, &control).unwrap();
        client.fetcher.handle_control(0, &answer).unwrap();
    }
    let delivery = server.provider.next_delivery(0).unwrap();
    assert_eq!((delivery.chunk(), delivery.stream_len()), (1, 316));
    let mut whole = delivery.header().to_vec();
    whole.extend_from_slice(&bytes[CHUNK..]);
    let read = |offset: u64, buffer: &mut [u8]| {
        buffer.copy_from_slice(&bytes[offset as usize..][..buffer.len()]);
        buffer.len()
    };
    for (offset, len) in
        [(0, 316), (0, 5), (3, 13), (10, 6), (10, 100), (15, 301), (16, 300), (200, 116), (315, 1)]
    {
        let mut buffer = vec![0; len];
        assert_eq!(delivery.fill(offset as u64, &mut buffer, read), len);
        assert_eq!(buffer, whole[offset..offset + len], "{offset}");
    }
    let mut buffer = [0; 50];
    assert_eq!(delivery.fill(300, &mut buffer, read), 16, "the stream ends");
    assert_eq!(delivery.fill(u64::MAX, &mut buffer, read), 0);
    // A file that has become shorter.
    assert_eq!(delivery.fill(0, &mut buffer, |_, _| 3), DELIVERY_HEADER + 3);
}

/// PROTO §10.16
#[test]
fn two_sources_share_one_content_and_one_may_vanish() {
    let bytes = content(24 * CHUNK + 9, 10);
    let (mut servers, hash) = servers(2, &bytes);
    let mut client = Client::new(FetchLimits::default(), 10);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0, 1]);
    while client.files.get(&fetch).is_none_or(|file| file.len() < 12) {
        assert!(client.step(&mut servers));
    }
    assert!(servers.iter().all(|server| server.opened.len() > 3), "both worked");
    client.fetcher.remove_source(1);
    servers[1].provider.close(1);
    servers[1].take_events();
    assert!(matches!(
        servers[1].events[..],
        [_, ProviderEvent::Failed { failure: Failure::SessionClosed, transfer: 0, .. }]
    ));
    client.run(&mut servers[..1]);
    assert!(client.bytes(fetch) == bytes);
    let ended = FetchEvent::SourceEnded { fetch, source: 1, why: EndReason::SessionClosed };
    assert!(client.events.contains(&ended));
    assert!(client.events.contains(&FetchEvent::Acknowledged { fetch, source: 0 }));
}

/// PROTO §10.5
#[test]
fn contents_of_one_session_share_its_control_stream_and_the_buffers() {
    let mut server = Server::new();
    let contents: Vec<_> = (0..5).map(|seed| content(CHUNK * seed + 1000, 20 + seed as u64)).collect();
    let hashes: Vec<_> = contents.iter().map(|bytes| server.add(bytes.clone())).collect();
    server.provider.open(0).unwrap();
    let mut client = Client::new(FetchLimits { buffers: 4, ..FetchLimits::default() }, 11);
    let fetches: Vec<_> =
        hashes.iter().map(|hash| client.fetch(Request::new(Kind::File, *hash), &[0])).collect();
    client.run(std::slice::from_mut(&mut server));
    for (fetch, bytes) in fetches.iter().zip(&contents) {
        assert!(client.bytes(*fetch) == *bytes);
    }
    let confirmed =
        server.events.iter().filter(|event| matches!(event, ProviderEvent::Confirmed { .. })).count();
    assert_eq!(confirmed, 5);
}

/// PROTO §10.4, §10.10
#[test]
fn an_earlier_run_is_continued_through_two_tiers_of_lists() {
    let zeros = vec![0; CHUNK];
    let values = (0..2049).map(|index| chunk_value(index, &zeros).unwrap()).collect();
    let size = 2049 * CHUNK as u64;
    let tree = Tree::from_values(size, values).unwrap();
    let hash = tree.hash();
    let mut server = Server::new();
    server.provider.add(tree, Kind::File, Access::Token(TOKEN)).unwrap();
    server.provider.open(0).unwrap();
    let mut have = ChunkSet::new();
    have.insert(0..2049);
    for missing in [3, 1500, 2048] {
        have.remove(missing..missing + 1);
    }
    let mut client = Client::new(FetchLimits::default(), 12);
    let request = Request { resume: Some(Resume { size, have }), ..Request::new(Kind::File, hash) };
    let fetch = client.fetch(request, &[0]);
    let (mut lists, mut chunks) = (Vec::new(), Vec::new());
    for stream in 0u32.. {
        client.write();
        let control = control_of(&mut client.fetcher, 0);
        if control.is_empty() {
            break;
        }
        each_message(&control, |message| match message {
            Message::GetList { list, .. } => lists.push(list),
            Message::Want { chunks: wanted, .. } => chunks.extend(wanted.iter()),
            _ => {}
        });
        let answer = server.exchange(0, &control).unwrap();
        client.fetcher.handle_control(0, &answer).unwrap();
        while let Some(delivery) = server.provider.next_delivery(0) {
            let stream = 10 * stream + delivery.chunk() as u32 % 10;
            client.fetcher.on_stream_data(0, stream, 0, &delivery.header(), false).unwrap();
            client.fetcher.on_stream_data(0, stream, DELIVERY_HEADER as u64, &zeros, true).unwrap();
            server.provider.on_pulled(0, &delivery);
        }
    }
    assert_eq!(chunks, [3, 1500, 2048]);
    assert_eq!(lists, [0, 1, 2].map(|index| ListId { level: 1, index }));
    assert!(client.files[&fetch].keys().copied().eq([3, 1500, 2048]));
    assert!(client.events.contains(&FetchEvent::SizeProven { fetch, size }));
    assert!(client.events.contains(&FetchEvent::Acknowledged { fetch, source: 0 }));
}

/// PROTO §10.12
#[test]
fn nothing_is_confirmed_before_every_chunk_is_written() {
    let bytes = content(3 * CHUNK, 13);
    let (mut servers, hash) = servers(1, &bytes);
    let mut client = Client::new(FetchLimits::default(), 13);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    while !client.events.contains(&FetchEvent::Complete { fetch }) {
        assert_eq!(client.fetcher.confirm(fetch), Err(NotComplete));
        assert!(client.step(&mut servers));
    }
    assert!(client.fetcher.progress(fetch).is_some(), "until the provider acknowledges");
    let progress = client.fetcher.progress(fetch).unwrap();
    assert_eq!(
        (progress.written, progress.verified, progress.wanted),
        (bytes.len() as u64, bytes.len() as u64, 0)
    );
    client.run(&mut servers);
    assert_eq!(client.fetcher.confirm(fetch), Err(NotComplete), "done and forgotten");
}

/// PROTO §10.12
#[test]
fn a_source_that_answers_after_all_is_done_is_told_so() {
    let bytes = content(3 * CHUNK, 17);
    let (mut servers, hash) = servers(3, &bytes);
    let mut client = Client::new(FetchLimits::default(), 17);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0, 1, 2]);
    client.run(&mut servers[..1]);
    assert_eq!(client.events.last(), Some(&FetchEvent::Acknowledged { fetch, source: 0 }));
    assert_eq!(client.fetcher.progress(fetch).map(|progress| progress.sources), Some(2));
    let served = *servers[2].contents.keys().next().unwrap();
    servers[2].provider.remove(served, Code::STOPPED);
    client.run(&mut servers);
    let refused = FetchEvent::SourceEnded { fetch, source: 2, why: EndReason::Refused(Code::NOT_FOUND) };
    assert_eq!(
        client.events[client.events.len() - 2..],
        [refused, FetchEvent::Acknowledged { fetch, source: 1 }]
    );
    assert!(matches!(servers[1].events[..], [_, ProviderEvent::Confirmed { .. }]));
    assert!(servers[1].opened.is_empty());
    assert_eq!(client.fetcher.progress(fetch), None);
}

/// PROTO §10.12
#[test]
fn a_source_whose_session_ended_before_it_knew_is_told_in_another_one() {
    // The session ends before the content is stored, or when its last word was on its way.
    for stored_first in [false, true] {
        let bytes = content(3 * CHUNK, 19);
        let (mut servers, hash) = servers(1, &bytes);
        let mut client = Client::new(FetchLimits::default(), 19);
        client.confirms = stored_first;
        let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
        while !client.events.contains(&FetchEvent::Complete { fetch }) {
            assert!(client.step(&mut servers));
        }
        client.fetcher.remove_source(0);
        client.fetcher.confirm(fetch).unwrap();
        assert!(client.fetcher.progress(fetch).is_some(), "nobody knows yet");
        servers[0].provider.close(0);
        servers[0].take_events();
        let lost = servers[0].events.last();
        assert!(matches!(lost, Some(ProviderEvent::Failed { .. })), "{lost:?}");

        servers[0].provider.open(0).unwrap();
        servers[0].opened.clear();
        client.fetcher.add_source(0);
        client.fetcher.ask(fetch, 0, TOKEN).unwrap();
        client.run(&mut servers);
        assert_eq!(client.events.last(), Some(&FetchEvent::Acknowledged { fetch, source: 0 }));
        assert!(servers[0].opened.is_empty(), "nothing is wanted again");
        let last = servers[0].events.last();
        assert!(matches!(last, Some(ProviderEvent::Confirmed { transfer: 0, .. })), "{last:?}");
        assert_eq!(client.fetcher.progress(fetch), None);
    }
}

/// PROTO §10.7
#[test]
fn announced_content_needs_no_token() {
    let bytes = content(900, 14);
    let tree = Tree::of(&bytes).unwrap();
    let hash = tree.hash();
    let mut server = Server::new();
    let key = server.provider.add(tree, Kind::File, Access::Announced).unwrap();
    server.contents.insert(key, bytes.clone());
    server.provider.open(0).unwrap();
    let mut client = Client::new(FetchLimits::default(), 14);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    client.run(std::slice::from_mut(&mut server));
    assert!(client.bytes(fetch) == bytes);
}

/// PROTO §10.13
#[test]
fn either_end_may_cancel_and_the_other_learns_why() {
    let bytes = content(9 * CHUNK, 15);
    let (mut servers, hash) = servers(1, &bytes);
    let mut client = Client::new(FetchLimits::default(), 15);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    for _ in 0..8 {
        client.step(&mut servers);
    }
    client.fetcher.cancel(fetch, Code::NOT_STORED);
    let control = control_of(&mut client.fetcher, 0);
    assert_eq!(servers[0].exchange(0, &control), Ok(Vec::new()));
    assert!(matches!(
        servers[0].events[..],
        [_, ProviderEvent::Failed { failure: Failure::Cancelled(Code::NOT_STORED), .. }]
    ));
    assert_eq!(servers[0].provider.next_delivery(0), None);

    // Again in the same session, and now the content goes away.
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    for _ in 0..3 {
        let control = control_of(&mut client.fetcher, 0);
        let answer = servers[0].exchange(0, &control).unwrap();
        client.fetcher.handle_control(0, &answer).unwrap();
    }
    let delivery = servers[0].provider.next_delivery(0).unwrap();
    assert_eq!(delivery.transfer(), 1);
    servers[0].provider.remove(delivery.content(), Code::CHANGED);
    let cancel = servers[0].control(0);
    assert_eq!(cancel, encoded(&Message::Cancel { transfer: 1, code: Code::CHANGED }));
    client.fetcher.handle_control(0, &cancel).unwrap();
    client.write();
    let why = EndReason::Cancelled(Code::CHANGED);
    assert_eq!(client.events.last(), Some(&FetchEvent::SourceEnded { fetch, source: 0, why }));
    assert_eq!(client.fetcher.progress(fetch).map(|progress| progress.sources), Some(0));
    assert_eq!(servers[0].provider.tree(delivery.content()), None);
}

/// PROTO §10.13
#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_transfer_with_the_reason() {
    let bytes = content(4 * CHUNK, 16);
    let (mut servers, hash) = servers(1, &bytes);
    let mut client = Client::new(FetchLimits::default(), 16);
    let fetch = client.fetch(Request::new(Kind::File, hash), &[0]);
    for _ in 0..2 {
        let control = control_of(&mut client.fetcher, 0);
        let answer = servers[0].exchange(0, &control).unwrap();
        client.fetcher.handle_control(0, &answer).unwrap();
    }
    let delivery = servers[0].provider.next_delivery(0).unwrap();
    let mut buffer = vec![0; 4096];
    let filled = delivery.fill(0, &mut buffer, |_, _| 100);
    client.fetcher.on_stream_data(0, 7, 0, &buffer[..filled], false).unwrap();
    servers[0].provider.on_failed(0, &delivery, Code::CHANGED);
    // The reset of the stream and the message come in any order.
    client.fetcher.on_stream_end(0, 7);
    let cancel = servers[0].control(0);
    client.fetcher.handle_control(0, &cancel).unwrap();
    client.write();
    let why = EndReason::Cancelled(Code::CHANGED);
    assert_eq!(client.events.last(), Some(&FetchEvent::SourceEnded { fetch, source: 0, why }));
    servers[0].take_events();
    assert!(matches!(
        servers[0].events[..],
        [_, ProviderEvent::Failed { failure: Failure::Ended(Code::CHANGED), .. }]
    ));
    assert_eq!(client.fetcher.stats().short, 1);
}

#[test]
fn limits_have_the_defaults_that_the_documents_name() {
    let limits = FetchLimits::default();
    assert_eq!((limits.buffers, limits.per_source, limits.transfers, limits.lists), (8, 8, 16, 16));
    let limits = ProviderLimits::default();
    assert_eq!((limits.parallel, limits.transfers), (2, 64));
}
