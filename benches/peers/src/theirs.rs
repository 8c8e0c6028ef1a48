//! The TSP SDK, as its own benchmarks use it.

use tsp_sdk::crypto::{open, seal};
use tsp_sdk::definitions::Payload;
use tsp_sdk::{OwnedVid, ReceivedTspMessage, RelationshipStatus, SecureStore, VerifiedVid};

use crate::BODY;
use crate::timing::Task;

/// Two identities in a store, which have a relationship: it takes no messages without one.
fn store(ends: &[OwnedVid; 2]) -> SecureStore {
    let store = SecureStore::new();
    for end in ends {
        store.add_private_vid(end.clone(), None).expect("a new one");
    }
    let [one, other] = ends;
    for (local, remote) in [(one, other), (other, one)] {
        let status = RelationshipStatus::Bidirectional {
            invite_digest: [1; 32],
            reply_digest: [2; 32],
            outstanding_nested_requests: vec![],
        };
        store
            .set_relation_and_status_for_vid(remote.identifier(), status, local.identifier())
            .expect("both are known");
    }
    store
}

fn ends() -> [OwnedVid; 2] {
    ["tcp://one.example:1", "tcp://two.example:1"]
        .map(|at| OwnedVid::new_did_peer(at.parse().expect("an address")))
}

fn pair(store: &SecureStore, ends: &[OwnedVid; 2]) {
    let [from, to] = ends;
    let (_, mut sealed) =
        store.seal_message(from.identifier(), to.identifier(), BODY).expect("both are known");
    match store.open_message(&mut sealed).expect("it is genuine") {
        ReceivedTspMessage::GenericMessage { message, .. } => assert_eq!(message, BODY),
        _ => panic!("another kind of message"),
    }
}

/// As in the published figure.
pub(crate) fn fresh_stores() -> Task {
    let ends = ends();
    Box::new(move || pair(&store(&ends), &ends))
}

pub(crate) fn one_store() -> Task {
    let ends = ends();
    let store = store(&ends);
    Box::new(move || pair(&store, &ends))
}

pub(crate) fn crypto_alone() -> Task {
    let ends = ends();
    Box::new(move || {
        let [from, to] = &ends;
        let mut sealed = seal(from, to, Payload::Content(BODY)).expect("good keys");
        let (payload, ..) = open(to, from, &mut sealed).expect("it is genuine");
        assert_eq!(payload.as_bytes(), BODY);
    })
}
