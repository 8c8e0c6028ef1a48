//! Tickets with something wrong in them, and with several addresses.

use std::net::UdpSocket;

use wraith_proto::Identity;

use crate::support::run;
use crate::transfer::{Scene, content, done, error, finish};

/// PROTO §11.7
#[test]
fn of_several_addresses_the_one_that_answers_is_used_and_the_others_get_three_datagrams_at_most() {
    let bytes = content(2_000_000);
    let scene = Scene::new("addresses", &bytes);
    let sender = scene.send(&[]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(std::time::Duration::from_millis(1))).unwrap();
    let ticket = sender.changed(|ticket| {
        let own = ticket.addresses[0];
        ticket.addresses = vec![silent.local_addr().unwrap(), "[::1]:9".parse().unwrap(), own];
    });
    done(&finish(&mut scene.receive(&ticket, &[])));
    assert!(std::fs::read(scene.received()).unwrap() == bytes);
    assert_eq!(count(&silent), 2, "the first one, and one after 250 ms: then another address has answered");
}

/// PROTO §11.7
#[test]
fn an_address_that_never_answers_gets_three_datagrams_and_then_one_line_says_so() {
    let scene = Scene::new("silent", b"x");
    let sender = scene.send(&[]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(std::time::Duration::from_millis(1))).unwrap();
    let ticket = sender.changed(|ticket| ticket.addresses = vec![silent.local_addr().unwrap()]);
    let end = finish(&mut scene.receive(&ticket, &["--patience", "0"]));
    assert!(error(&end).starts_with(&format!("no answer from {}: check", silent.local_addr().unwrap())));
    assert_eq!(count(&silent), 3);
    assert_eq!(scene.names(), Vec::<String>::new());
}

fn count(socket: &UdpSocket) -> usize {
    let mut buffer = [0; 2000];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok()).count()
}

/// PROTO §10.7
#[test]
fn a_wrong_content_id_and_a_wrong_token_get_the_same_answer_and_the_sender_goes_on() {
    let bytes = content(100_000);
    let scene = Scene::new("changed", &bytes);
    let sender = scene.send(&[]);
    let hash = sender.changed(|ticket| ticket.hash[0] ^= 1);
    let token = sender.changed(|ticket| ticket.token[0] ^= 1);
    let lines = [hash, token].map(|ticket| {
        let end = finish(&mut scene.receive(&ticket, &[]));
        assert_eq!(scene.names(), Vec::<String>::new());
        error(&end).to_owned()
    });
    assert_eq!(lines[0], lines[1]);
    assert!(lines[0].contains("the sender does not offer this content under this ticket; get a new ticket"));
    done(&finish(&mut scene.receive(&sender.ticket(), &[])));
    assert_eq!(sender.process.finish().code, Some(0));
}

#[test]
fn another_peer_than_the_tickets_is_not_talked_to() {
    let scene = Scene::new("peer", b"x");
    let sender = scene.send(&[]);
    let other = Identity::from_seed([9; 32]).peer_id();
    let ticket = sender.changed(|ticket| ticket.peer = other);
    let end = finish(&mut scene.receive(&ticket, &[]));
    assert!(error(&end).starts_with(&format!("another peer than {other} answers at 127.0.0.1:")));
    assert_eq!(scene.names(), Vec::<String>::new());
}

/// PROTO §11.2, §11.3
#[test]
fn a_damaged_ticket_is_refused_before_anything_is_done() {
    let scene = Scene::new("damaged", b"x");
    let sender = scene.send(&[]);
    let ticket = sender.ticket();
    let last = if ticket.ends_with('a') { "q" } else { "a" };
    let flipped = format!("{}{last}", &ticket[..ticket.len() - 1]);
    for bad in [flipped, ticket[..ticket.len() - 5].to_owned(), ticket.to_uppercase(), "hello".to_owned()] {
        let end = finish(&mut scene.receive(&bad, &[]));
        assert!(error(&end).contains("copy the line that `wraith-cli send` printed"), "{bad}");
    }
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[test]
fn with_to_only_that_peer_is_served() {
    let bytes = content(10);
    let scene = Scene::new("to", &bytes);
    let friend = scene.target.join("identity");
    let keygen = run(["keygen".as_ref(), "--output".as_ref(), friend.as_os_str()]);
    let peer = keygen.stdout.last().unwrap().clone();
    let sender = scene.send(&["--to", &peer]);
    let end = finish(&mut scene.receive(&sender.ticket(), &[]));
    assert!(
        error(&end).contains("does not send to this identity") || error(&end).contains("refused the session")
    );
    done(&finish(scene.receive(&sender.ticket(), &[]).arg("--identity").arg(&friend)));
    assert_eq!(sender.process.finish().code, Some(0));
}

#[test]
fn another_source_is_asked_where_the_tickets_own_is_silent() {
    let bytes = content(70_000);
    let scene = Scene::new("from", &bytes);
    let sender = scene.send(&[]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = format!(
        "{}@{}",
        sender.event["peer"].as_str().unwrap(),
        sender.event["addresses"][0].as_str().unwrap()
    );
    let ticket = sender.changed(|ticket| ticket.addresses = vec![silent.local_addr().unwrap()]);
    done(&finish(&mut scene.receive(&ticket, &["--from", &at])));
    assert!(std::fs::read(scene.received()).unwrap() == bytes);
}
