//! Pieces of chunks cost no allocation: neither what arrives nor what is sent.

use wraith_sim::alloc::{Counting, measure};
use wraith_transfer_proto::{
    Access, CHUNK, FetchLimits, Fetcher, Kind, Provider, ProviderLimits, Request, Token, Tree,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const TOKEN: Token = [1; 16];
const PIECE: usize = 1_400;

#[test]
fn pieces_of_a_chunk_are_taken_and_given_without_allocation() {
    let bytes: Vec<u8> = (0..6 * CHUNK).map(|at| (at >> 7) as u8).collect();
    let tree = Tree::of(&bytes).unwrap();
    let mut fetcher: Fetcher<u8, u32> = Fetcher::new(FetchLimits::default());
    let fetch = fetcher.fetch(Request::new(Kind::File, tree.hash()));
    fetcher.add_source(0);
    fetcher.ask(fetch, 0, TOKEN).unwrap();
    let mut provider: Provider<u8> = Provider::new(ProviderLimits::default(), [2; 32]);
    provider.add(tree, Kind::File, Access::Token(TOKEN)).unwrap();
    provider.open(0).unwrap();

    let mut buffer = vec![0; 1 << 16];
    let mut piece = [0; PIECE];
    let mut chunks = 0;
    while chunks < 6 {
        let len = fetcher.poll_control(0, &mut buffer);
        provider.handle(0, &buffer[..len]).unwrap();
        let len = provider.poll_control(0, &mut buffer);
        fetcher.handle_control(0, &buffer[..len]).unwrap();
        let Some(delivery) = provider.next_delivery(0) else {
            continue;
        };
        let ((), counts) = measure(|| {
            // All but the end, which verifies the chunk and wants the next one.
            for offset in (0..delivery.stream_len() - PIECE as u64).step_by(PIECE) {
                let filled = delivery.fill(offset, &mut piece, |at, out| {
                    out.copy_from_slice(&bytes[at as usize..][..out.len()]);
                    out.len()
                });
                fetcher.on_stream_data(0, chunks, offset, &piece[..filled], false).unwrap();
            }
        });
        assert_eq!((counts.allocations, counts.deallocations), (0, 0), "chunk {chunks}");
        let offset = (delivery.stream_len() - 1) / PIECE as u64 * PIECE as u64;
        let filled = delivery.fill(offset, &mut piece, |at, out| {
            out.copy_from_slice(&bytes[at as usize..][..out.len()]);
            out.len()
        });
        fetcher.on_stream_data(0, chunks, offset, &piece[..filled], true).unwrap();
        let ready = fetcher.poll_ready().unwrap();
        assert!(ready.data() == &bytes[ready.offset() as usize..][..CHUNK]);
        fetcher.written(ready);
        provider.on_pulled(0, &delivery);
        chunks += 1;
    }
    assert_eq!(fetcher.progress(fetch).unwrap().written, bytes.len() as u64);
}
