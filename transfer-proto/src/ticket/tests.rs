use super::*;
use alloc::string::ToString;
use alloc::vec;
use proptest::prelude::*;
use wraith_proto::Identity;

fn ticket() -> Ticket {
    Ticket {
        kind: Kind::File,
        hash: *blake3::hash(b"content").as_bytes(),
        size: 1_234_567,
        name: String::from("holiday.tar"),
        peer: Identity::from_seed([7; 32]).peer_id(),
        token: *b"sixteen byte key",
        addresses: vec!["192.0.2.7:4433".parse().unwrap(), "[2001:db8::7]:4433".parse().unwrap()],
    }
}

/// The text of a body with a right checksum: what a hostile or broken writer could make.
fn text(body: &[u8]) -> String {
    let mut text = String::from(PREFIX);
    base32::encode(&[body, &checksum(body)].concat(), &mut text);
    text
}

fn body(ticket: &Ticket) -> Vec<u8> {
    let mut bytes = base32::decode(&ticket.encode().unwrap()[PREFIX.len()..]).unwrap();
    bytes.truncate(bytes.len() - CHECKSUM);
    bytes
}

/// `PROTO §11.1`, `PROTO §11.2`
#[test]
fn a_ticket_has_the_bytes_that_the_document_shows() {
    let ticket = ticket();
    let mut bytes = vec![1, 0];
    bytes.extend(ticket.hash);
    bytes.extend([0x80, 0x12, 0xd6, 0x87, 11]);
    bytes.extend(b"holiday.tar");
    bytes.extend(ticket.peer.as_bytes());
    bytes.extend(ticket.token);
    bytes.extend([2, 4, 192, 0, 2, 7, 0x11, 0x51, 6, 0x20, 0x01, 0x0d, 0xb8]);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0x11, 0x51]);
    assert_eq!(body(&ticket), bytes);
    let encoded = ticket.encode().unwrap();
    assert!(encoded.starts_with("wraith1aea"), "{encoded}");
    assert_eq!(encoded.parse(), Ok(ticket));
}

/// `PROTO §11.2`, `PROTO §11.3`
#[test]
fn every_change_of_one_character_is_refused() {
    let encoded = ticket().encode().unwrap();
    for at in 0..encoded.len() {
        for character in ('!'..='~').chain([' ', '\n', 'é']) {
            let changed = [&encoded[..at], &character.to_string(), &encoded[at + 1..]].concat();
            if changed != encoded {
                let error = changed.parse::<Ticket>().expect_err(&changed);
                let expected = match at {
                    6 if character.is_ascii_digit() => TicketError::Version,
                    0..7 => TicketError::NotATicket,
                    _ => TicketError::Damaged,
                };
                assert_eq!(error, expected, "{changed}");
            }
        }
        let shorter = [&encoded[..at], &encoded[at + 1..]].concat();
        assert!(shorter.parse::<Ticket>().is_err());
        let longer = [&encoded[..at], "a", &encoded[at..]].concat();
        assert!(longer.parse::<Ticket>().is_err());
    }
    assert_eq!([&encoded, "a"].concat().parse::<Ticket>(), Err(TicketError::Damaged));
    assert_eq!(encoded.to_uppercase().parse::<Ticket>(), Err(TicketError::NotATicket));
    assert_eq!("".parse::<Ticket>(), Err(TicketError::NotATicket));
    assert_eq!("wraith1".parse::<Ticket>(), Err(TicketError::Damaged));
    assert_eq!("wraith2aaaa".parse::<Ticket>(), Err(TicketError::Version));
}

/// `PROTO §11.3`, `PROTO §11.4`
#[test]
fn a_right_checksum_does_not_excuse_wrong_fields() {
    let good = body(&ticket());
    assert_eq!(text(&good).parse(), Ok(ticket()));
    let name = 2 + 32 + 4;
    let addresses = name + 1 + 11 + 32 + 16;
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        text(&bytes).parse::<Ticket>()
    };
    assert_eq!(changed(0, 2), Err(TicketError::Version));
    assert_eq!(changed(1, 2), Err(TicketError::Kind));
    assert_eq!(changed(name + 1, b'/'), Err(TicketError::Name));
    assert_eq!(changed(name + 1, b'\n'), Err(TicketError::Name));
    assert_eq!(changed(name + 1, 0xff), Err(TicketError::Name), "not UTF-8");
    let peer = name + 1 + 11;
    let mut bytes = good.clone();
    bytes[peer..peer + 32].fill(0);
    assert_eq!(text(&bytes).parse::<Ticket>(), Err(TicketError::Peer), "of small order");
    assert_eq!(changed(addresses, 9), Err(TicketError::TooManyAddresses));
    assert_eq!(changed(addresses, 3), Err(TicketError::Malformed));
    assert_eq!(changed(addresses, 1), Err(TicketError::Malformed));
    assert_eq!(changed(addresses + 1, 5), Err(TicketError::Malformed));
    assert_eq!(changed(addresses + 2, 224), Err(TicketError::Address), "multicast");
    assert_eq!(text(&[&good[..], &[0]].concat()).parse::<Ticket>(), Err(TicketError::Malformed));
    for len in 0..good.len() {
        assert!(text(&good[..len]).parse::<Ticket>().is_err());
    }
}

/// `PROTO §11.4`, `PROTO §11.5`
#[test]
fn limits_hold_at_their_edges_for_writers_too() {
    let edge = Ticket {
        size: MAX_SIZE,
        name: "x".repeat(255),
        addresses: vec!["[2001:db8::1]:1".parse().unwrap(); 8],
        kind: Kind::Folder,
        ..ticket()
    };
    let encoded = edge.encode().unwrap();
    assert_eq!(encoded.len(), MAX_TICKET_TEXT);
    assert_eq!(encoded.parse(), Ok(edge.clone()));
    assert_eq!([&encoded, "aaaaaaaa"].concat().parse::<Ticket>(), Err(TicketError::TooLong));

    let refused = |ticket: Ticket, error| assert_eq!(ticket.encode(), Err(error));
    refused(Ticket { size: MAX_SIZE + 1, ..edge.clone() }, TicketError::Size);
    refused(Ticket { name: "x".repeat(256), ..edge.clone() }, TicketError::Name);
    for name in ["", "..", "../name", "a\\b", "a\u{1b}b"] {
        refused(Ticket { name: String::from(name), ..edge.clone() }, TicketError::Name);
    }
    let addresses = vec!["[2001:db8::1]:1".parse().unwrap(); 9];
    refused(Ticket { addresses, ..edge.clone() }, TicketError::TooManyAddresses);
    for address in
        ["0.0.0.0:1", "192.0.2.1:0", "255.255.255.255:1", "224.0.0.1:1", "[ff02::1]:1", "[::ffff:1.2.3.4]:1"]
    {
        let addresses = vec![address.parse().unwrap()];
        refused(Ticket { addresses, ..edge.clone() }, TicketError::Address);
    }
}

fn addresses() -> impl Strategy<Value = Vec<SocketAddr>> {
    let any_address = (any::<bool>(), any::<[u8; 16]>(), 1u16..)
        .prop_map(|(six, octets, port)| {
            let ip = if six {
                IpAddr::from(octets)
            } else {
                IpAddr::from([octets[0], octets[1], octets[2], octets[3]])
            };
            SocketAddr::new(ip, port)
        })
        .prop_filter("no peer can be there", is_reachable);
    proptest::collection::vec(any_address, 0..=MAX_ADDRESSES)
}

proptest! {
    #[test]
    fn every_ticket_comes_back_as_it_went(
        name in "[^/\\\\\\x00-\\x1f\\x7f-\\u{9f}]{3,60}", size in 0..=MAX_SIZE, token: [u8; 16], hash: [u8; 32], addresses in addresses(),
    ) {
        let ticket = Ticket { hash, size, name, token, addresses, ..ticket() };
        prop_assume!(ticket.name.len() <= 255 && ticket.name != "...");
        prop_assert_eq!(ticket.encode().unwrap().parse(), Ok(ticket));
    }

    #[test]
    fn arbitrary_text_is_refused_without_panic(tail in "[a-z2-7]{0,900}", any_text in ".*") {
        prop_assert!(["wraith1", &tail].concat().parse::<Ticket>().is_err());
        prop_assert!(any_text.parse::<Ticket>().is_err());
    }

    #[test]
    fn arbitrary_bodies_under_a_right_checksum_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let _ = text(&[&[1, 0], &bytes[..]].concat()).parse::<Ticket>();
    }
}
