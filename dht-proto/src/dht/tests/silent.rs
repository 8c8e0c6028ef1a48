//! Nodes that do not answer, and how long others wait for them.

use super::*;

/// A network, the last of which asks; what went to nodes that are not in it; and the time.
struct Scene {
    peers: Vec<Peer>,
    unanswered: Vec<(NodeRef, Vec<u8>)>,
    now: Instant,
}

impl Scene {
    /// Four nodes, which name two more that are gone, and one that begins to join through the first of them.
    fn new() -> Self {
        let mut peers = network(6);
        peers.truncate(4);
        peers.push(Peer::new(50));
        let first = peers[0].me;
        peers[4].dht.bootstrap(first, NOW);
        Self { peers, unanswered: vec![], now: NOW }
    }

    fn asks(&mut self) -> &mut Dht {
        &mut self.peers.last_mut().unwrap().dht
    }

    /// Carries datagrams at once until nobody has one.
    fn carry(&mut self) {
        let now = self.now;
        while let Some((from, (to, datagram))) =
            self.peers.iter_mut().find_map(|peer| Some((peer.me, peer.sends(now)?)))
        {
            match self.peers.iter_mut().find(|peer| peer.me.address == to.address) {
                Some(peer) => peer.dht.handle_unsealed(now, from, &datagram).unwrap(),
                None => self.unanswered.push((to, datagram)),
            }
        }
    }

    /// Lets time pass until there is what `look` wants of the node that asks; when that is, in milliseconds.
    fn wait<T>(&mut self, mut look: impl FnMut(&mut Dht) -> Option<T>) -> (u64, T) {
        loop {
            self.carry();
            if let Some(seen) = look(self.asks()) {
                return (self.now.saturating_since(NOW).as_millis() as u64, seen);
            }
            self.now = self.asks().poll_timeout();
            let now = self.now;
            self.asks().handle_timeout(now);
        }
    }

    fn ready(&mut self) -> u64 {
        self.wait(|dht| dht.can_look_up().then_some(())).0
    }

    /// Looks up what has this key; when that ends, and whether it was found.
    fn get(&mut self, key: Id) -> (u64, bool) {
        let now = self.now;
        let id = self.asks().get(key, Kind::Value, now).unwrap();
        self.ended(id)
    }

    fn ended(&mut self, id: QueryId) -> (u64, bool) {
        self.wait(|dht| {
            while let Some(event) = dht.poll_event() {
                if let Event::Ended(ended, outcome) = event
                    && ended == id
                {
                    return Some(matches!(outcome, Outcome::Found { .. }));
                }
            }
            None
        })
    }
}

#[test]
fn a_lookup_begins_and_ends_without_the_time_that_silent_nodes_had_before() {
    // PROTO §14.11
    let mut scene = Scene::new();
    assert_eq!(scene.ready(), 300);
    assert_eq!(scene.asks().contact_count(), 4);
    let key = value_key(b"nobody has it");
    // They have their whole time once,
    assert_eq!(scene.get(key), (1_500, false));
    // and then the time after which another one is asked.
    assert_eq!(scene.get(key), (1_800, false));
}

#[test]
fn who_did_not_answer_a_lookup_may_be_back_a_minute_after_that_began() {
    let (at, node) =
        (|millis| NOW.saturating_add(Duration::from_millis(millis)), Node::from(Peer::new(2).me));
    let mut query = Query::new();
    query.begin(Goal::Nodes, value_key(b"x"), 0, NOW);
    query.begin_with(core::iter::once(node));
    assert!(query.next(NOW, [1; 8]).is_some() && !query.has_missed(&node, NOW));
    assert_eq!(query.expire(at(1_500)), Some(node));
    assert!(query.has_missed(&node, at(59_999)) && !query.has_missed(&node, at(60_000)));
    let elsewhere = Node { address: Node::from(Peer::new(3).me).address, ..node };
    assert!(!query.has_missed(&elsewhere, at(1_500)));
}

#[test]
fn a_slow_node_that_nobody_else_knows_is_asked_by_the_first_lookup_too_and_waited_for() {
    let mut scene = Scene::new();
    let mut slow = Peer::new(60);
    let key = value_key(b"the slow one has it");
    slow.dht.put(&Record::Value(b"the slow one has it"), None, NOW).unwrap();
    scene.asks().bootstrap(slow.me, NOW);
    let ready = scene.ready();
    let now = scene.now;
    let id = scene.asks().get(key, Kind::Value, now).unwrap();
    // Both the lookup that joins and this one ask it.
    let (asked, ()) = scene.wait(|dht| dht.queries[1..].iter().any(Query::is_stalled).then_some(()));
    assert!(ready < asked && asked < 1_500, "{ready}, {asked}");
    let late: Vec<_> = scene.unanswered.extract_if(.., |(to, _)| *to == slow.me).collect();
    assert_eq!(late.len(), 2);
    for (_, request) in late {
        let from = scene.peers[4].me;
        let answer = answer_to(&mut slow, from, &request);
        let now = scene.now;
        scene.asks().handle_unsealed(now, slow.me, &answer).unwrap();
    }
    assert_eq!(scene.ended(id), (asked, true));
    assert_eq!(scene.asks().contact_count(), 5);
}
