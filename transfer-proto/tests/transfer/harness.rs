//! Both machines on streams of memory, with pieces in any order.

use std::collections::BTreeMap;
use wraith_transfer_proto::{
    Access, CHUNK, ContentKey, Delivery, FetchEvent, FetchId, FetchLimits, Fetcher, Hash, Kind, Message,
    Provider, ProviderEvent, ProviderLimits, Request, Token, Tree, Violation,
};

pub(crate) const TOKEN: Token = *b"sixteen byte key";

/// Bytes that differ from place to place and from seed to seed.
pub(crate) fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed | 1);
    let mut bytes = vec![0; len];
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&random.next().to_le_bytes()[..part.len()]);
    }
    bytes
}

/// A small generator of test orders (xorshift64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// All messages in `bytes`, which must be whole ones, by a function that sees each.
pub(crate) fn each_message(mut bytes: &[u8], mut see: impl FnMut(Message<'_>)) {
    while let Some(first) = bytes.first() {
        let prefix = 1usize << (first >> 6);
        let len = bytes[1..prefix]
            .iter()
            .fold(usize::from(first & 0x3f), |len, byte| len << 8 | usize::from(*byte));
        see(Message::decode(&bytes[prefix..prefix + len]).unwrap().unwrap());
        bytes = &bytes[prefix + len..];
    }
}

pub(crate) fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}

pub(crate) fn control_of(fetcher: &mut Fetcher<u8, u32>, source: u8) -> Vec<u8> {
    let mut out = vec![0; 1 << 20];
    let len = fetcher.poll_control(source, &mut out);
    out.truncate(len);
    out
}

/// One provider's side: the machine, its contents in memory, and its open streams in each session.
pub(crate) struct Server {
    pub(crate) provider: Provider<u8>,
    pub(crate) contents: BTreeMap<ContentKey, Vec<u8>>,
    pub(crate) events: Vec<ProviderEvent>,
    /// Chunks in the order in which their streams were opened.
    pub(crate) opened: Vec<u64>,
    streams: Vec<Stream>,
    next_stream: u32,
}

struct Stream {
    session: u8,
    id: u32,
    delivery: Delivery,
    bytes: Vec<u8>,
    /// Pieces left: start and end.
    pieces: Vec<(usize, usize)>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            provider: Provider::new(ProviderLimits::default(), [3; 32]),
            contents: BTreeMap::new(),
            events: Vec::new(),
            opened: Vec::new(),
            streams: Vec::new(),
            next_stream: 0,
        }
    }

    pub(crate) fn add(&mut self, bytes: Vec<u8>) -> Hash {
        let tree = Tree::of(&bytes).unwrap();
        let hash = tree.hash();
        let key = self.provider.add(tree, Kind::File, Access::Token(TOKEN)).unwrap();
        self.contents.insert(key, bytes);
        hash
    }

    /// Opens as many streams as the provider allows and cuts each into pieces.
    fn open_streams(&mut self, session: u8, random: &mut Random) {
        while let Some(delivery) = self.provider.next_delivery(session) {
            let content = &self.contents[&delivery.content()];
            let mut bytes = vec![0; delivery.stream_len() as usize];
            let filled = delivery.fill(0, &mut bytes, |offset, buffer| {
                buffer.copy_from_slice(&content[offset as usize..][..buffer.len()]);
                buffer.len()
            });
            assert_eq!(filled, bytes.len());
            let mut pieces = Vec::new();
            let mut start = 0;
            while start < bytes.len() {
                let end = bytes.len().min(start + 1 + random.below(200_000));
                pieces.insert(random.below(pieces.len() + 1), (start, end));
                start = end;
            }
            self.opened.push(delivery.chunk());
            let id = self.next_stream;
            self.next_stream += 1;
            self.streams.push(Stream { session, id, delivery, bytes, pieces });
        }
    }

    /// Delivers one piece of one stream; whether there was any.
    pub(crate) fn deliver(
        &mut self,
        session: u8,
        fetcher: &mut Fetcher<u8, u32>,
        source: u8,
        random: &mut Random,
    ) -> bool {
        self.open_streams(session, random);
        let of_session: Vec<_> =
            (0..self.streams.len()).filter(|at| self.streams[*at].session == session).collect();
        if of_session.is_empty() {
            return false;
        }
        let at = of_session[random.below(of_session.len())];
        let stream = &mut self.streams[at];
        let (start, end) = stream.pieces.pop().unwrap();
        let fin = end == stream.bytes.len();
        fetcher.on_stream_data(source, stream.id, start as u64, &stream.bytes[start..end], fin).unwrap();
        if stream.pieces.is_empty() {
            let stream = self.streams.remove(at);
            self.provider.on_pulled(session, &stream.delivery);
            self.provider.on_delivered(session, &stream.delivery);
            // A bare end behind a chunk that is whole already is no stream of its own.
            let len = stream.bytes.len() as u64;
            assert_eq!(fetcher.on_stream_data(source, stream.id, len, &[], true), Ok(()));
        }
        true
    }

    /// Takes control bytes of the receiver and gives back the provider's.
    pub(crate) fn exchange(&mut self, session: u8, bytes: &[u8]) -> Result<Vec<u8>, Violation> {
        let result = self.provider.handle(session, bytes);
        self.take_events();
        result?;
        Ok(self.control(session))
    }

    pub(crate) fn control(&mut self, session: u8) -> Vec<u8> {
        let mut out = vec![0; 4 << 20];
        let len = self.provider.poll_control(session, &mut out);
        out.truncate(len);
        out
    }

    pub(crate) fn take_events(&mut self) {
        while let Some((_, event)) = self.provider.poll_event() {
            self.events.push(event);
        }
    }
}

/// A receiver that writes into memory.
pub(crate) struct Client {
    pub(crate) fetcher: Fetcher<u8, u32>,
    pub(crate) files: BTreeMap<FetchId, BTreeMap<u64, Vec<u8>>>,
    pub(crate) events: Vec<FetchEvent<u8>>,
    pub(crate) random: Random,
    /// Whether it confirms what is complete.
    pub(crate) confirms: bool,
}

impl Client {
    pub(crate) fn new(limits: FetchLimits, seed: u64) -> Self {
        Self {
            fetcher: Fetcher::new(limits),
            files: BTreeMap::new(),
            events: Vec::new(),
            random: Random(seed | 1),
            confirms: true,
        }
    }

    /// Begins a fetch from `sources`.
    pub(crate) fn fetch(&mut self, request: Request, sources: &[u8]) -> FetchId {
        let fetch = self.fetcher.fetch(request);
        for source in sources {
            self.fetcher.add_source(*source);
            self.fetcher.ask(fetch, *source, TOKEN).unwrap();
        }
        fetch
    }

    /// Writes what is ready, confirms what is complete, and notes what happened.
    pub(crate) fn write(&mut self) {
        while let Some(ready) = self.fetcher.poll_ready() {
            let file = self.files.entry(ready.fetch()).or_default();
            assert_eq!(ready.offset(), ready.chunk() * CHUNK as u64);
            assert!(file.insert(ready.chunk(), ready.data().to_vec()).is_none(), "each chunk once");
            self.fetcher.written(ready);
        }
        while let Some(event) = self.fetcher.poll_event() {
            if let FetchEvent::Complete { fetch } = event
                && self.confirms
            {
                self.fetcher.confirm(fetch).unwrap();
            }
            self.events.push(event);
        }
    }

    /// The bytes written, if no chunk is missing.
    pub(crate) fn bytes(&self, fetch: FetchId) -> Vec<u8> {
        let empty = BTreeMap::new();
        let file = self.files.get(&fetch).unwrap_or(&empty);
        assert!(file.keys().copied().eq(0..file.len() as u64), "chunks in one row");
        file.values().flatten().copied().collect()
    }

    /// Runs sources, each a session with its server of the same number, until nothing moves any more.
    pub(crate) fn run(&mut self, servers: &mut [Server]) {
        while self.step(servers) {}
    }

    /// One round of control bytes and one piece of a chunk for each source; whether anything moved.
    pub(crate) fn step(&mut self, servers: &mut [Server]) -> bool {
        let mut moved = false;
        for (source, server) in servers.iter_mut().enumerate() {
            let source = source as u8;
            self.write();
            let control = control_of(&mut self.fetcher, source);
            let answer = server.exchange(source, &control).unwrap();
            for piece in answer.chunks(1 + self.random.below(9_000)) {
                self.fetcher.handle_control(source, piece).unwrap();
            }
            moved |= !control.is_empty() || !answer.is_empty();
            moved |= server.deliver(source, &mut self.fetcher, source, &mut self.random);
        }
        self.write();
        moved
    }
}

/// Servers of the same content, each with the session of its number open.
pub(crate) fn servers(count: u8, bytes: &[u8]) -> (Vec<Server>, Hash) {
    let mut hash = [0; 32];
    let servers = (0..count)
        .map(|session| {
            let mut server = Server::new();
            hash = server.add(bytes.to_vec());
            server.provider.open(session).unwrap();
            server
        })
        .collect();
    (servers, hash)
}
