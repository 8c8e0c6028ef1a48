//! What is answered, and with how many bytes.

use super::super::bench::{Bench, Heard, Voice};
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::dht::{Ask, Header, LONGEST, NOTE, Offer, Reply, Signed};
use crate::protocol::Door;

const NONE: [u8; 16] = [0; 16];

/// Sends a genuine ping of 1,200 bytes, and takes the address token that comes with the answer.
fn pong(bench: &mut Bench, voice: Voice) -> Outcome<[u8; 16]> {
    let transaction = bench.transaction();
    let request = bench.request(voice, transaction, NONE, &Ask::Ping.to_bytes());
    let reaction = bench.exchange(voice.door, transaction, &request)?;
    match reaction.heard {
        Heard::Answer { token, reply: Reply::Pong } => Ok(token),
        other => Err(Verdict::Fail(format!("a ping of 1,200 bytes is answered by {other:?}"))),
    }
}

pub(super) fn a_ping_is_answered_with_its_transaction_and_a_token(bench: &mut Bench) -> Outcome {
    let token = pong(bench, bench.front)?;
    ensure!(token != NONE, "§14.4: the token in an answer is none");
    let transaction = bench.transaction();
    let short = bench.request(bench.front, transaction, token, &Ask::Ping.to_bytes());
    ensure_eq!(short.len(), 25 + NOTE + 1, "the length of a ping with a token");
    let reaction = bench.exchange(Door::Front, transaction, &short)?;
    let answered = matches!(reaction.heard, Heard::Answer { reply: Reply::Pong, .. });
    ensure!(answered, "§14.5: a ping with the token of an answer gets {:?}", reaction.heard);
    ensure_eq!(reaction.door, Door::Front, "§14.2: the address that is answered");
    Ok(())
}

pub(super) fn a_request_without_a_token_has_1200_bytes(bench: &mut Bench) -> Outcome {
    let (transaction, find) = (bench.transaction(), Ask::FindNode(bench.rng.bytes32()).to_bytes());
    let header = Header::Request { transaction, token: NONE };
    for len in [find.len(), LONGEST - 1 - 25 - NOTE] {
        let mut message = find.clone();
        message.resize(len, 0);
        let request = bench.sealed(bench.front, &header, &message);
        let reaction = bench.exchange(Door::Front, transaction, &request)?;
        let bytes = request.len();
        ensure!(
            matches!(reaction.heard, Heard::Token(_)),
            "a request of {bytes} bytes without a token gets {:?}",
            reaction.heard
        );
        ensure!(reaction.len <= bytes, "{} bytes for {bytes} of a stranger", reaction.len);
    }
    let transaction = bench.transaction();
    let request = bench.request(bench.front, transaction, NONE, &find);
    let reaction = bench.exchange(Door::Front, transaction, &request)?;
    let found = matches!(reaction.heard, Heard::Answer { reply: Reply::Found { .. }, .. });
    ensure!(found, "a request of 1,200 bytes without a token gets {:?}", reaction.heard);
    ensure!(reaction.len <= request.len(), "{} bytes for 1,200 of a stranger", reaction.len);
    Ok(())
}

pub(super) fn a_token_is_good_at_its_address_alone(bench: &mut Bench) -> Outcome {
    let token = pong(bench, bench.front)?;
    let mut altered = token;
    altered[15] ^= 1;
    let at_the_back = Voice { door: Door::Back, ..bench.front };
    bench.overhear(bench.front, Door::Back);
    let other = bench.back;
    for (what, voice, token) in [
        ("the token of another address", at_the_back, token),
        ("the token of somebody else at another address", other, token),
        ("an altered token", bench.front, altered),
    ] {
        let transaction = bench.transaction();
        let request = bench.request(voice, transaction, token, &Ask::Ping.to_bytes());
        let reaction = bench.exchange(voice.door, transaction, &request)?;
        let Heard::Token(given) = reaction.heard else {
            return Err(Verdict::Fail(format!("{what} gets {:?}", reaction.heard)));
        };
        ensure!(given != token, "{what} is given out");
    }
    Ok(())
}

pub(super) fn malformed_requests_are_dropped(bench: &mut Bench) -> Outcome {
    let target = bench.rng.bytes32();
    let find = [&[3], &target[..]].concat();
    let store = |offer| Ask::Store { write_token: [1; 8], condition: None, offer }.to_bytes();
    let put = store(Offer::Value(vec![2; 3]));
    let with = |at: usize, byte: u8| {
        let mut message = put.clone();
        message[at] = byte;
        message
    };
    let mut behind = Ask::Ping.to_bytes();
    behind.resize(LONGEST - 25 - NOTE, 0);
    *behind.last_mut().expect("it is long") = 1;
    let offer = Offer::Value(vec![2; 3]);
    let mut conditional = Ask::Store { write_token: [1; 8], condition: Some(7), offer }.to_bytes();
    conditional[9] = 2;
    let signed = Signed::new(&bench.front.seed, 1, 1, &[3; 901]);
    let malformed = [
        ("kind 0", vec![0]),
        ("kind 5", vec![5]),
        ("a byte behind the message", vec![1, 1]),
        ("a byte behind the zeros behind it", behind),
        ("find-value of kind 0", [&find[..], &[0]].concat()),
        ("find-value of kind 4", [&find[..], &[4]].concat()),
        ("condition 2", conditional),
        ("a record of kind 0", with(10, 0)),
        ("a record of kind 4", with(10, 4)),
        ("a value of 1,001 bytes", store(Offer::Value(vec![2; 1_001]))),
        ("a signed value of 901 bytes", store(Offer::Signed(signed))),
        ("a message that begins late", vec![0, 1]),
    ];
    let door = bench.front.door;
    for (what, message) in malformed {
        let transaction = bench.transaction();
        let request = bench.request(bench.front, transaction, NONE, &message);
        bench.silent(door, &request, what)?;
    }
    let token = pong(bench, bench.front)?;
    for (what, message) in [
        ("no message", Vec::new()),
        ("a target that is cut off", find[..32].to_vec()),
        ("a kind that is cut off", find),
        ("a value that is cut off", put[..put.len() - 1].to_vec()),
    ] {
        let transaction = bench.transaction();
        let request = bench.request(bench.front, transaction, token, &message);
        bench.silent(door, &request, what)?;
    }
    pong(bench, bench.front).map(drop)
}

pub(super) fn malformed_headers_are_dropped(bench: &mut Bench) -> Outcome {
    let transaction = bench.transaction();
    let good = bench.request(bench.front, transaction, NONE, &Ask::Ping.to_bytes());
    let first = |byte| [&[byte], &good[1..]].concat();
    let token = Header::Token { transaction, token: [9; 16] }.to_bytes();
    for (what, datagram) in [
        ("a datagram without bytes", Vec::new()),
        ("one byte", vec![0x62]),
        ("a header that is cut off", good[..24].to_vec()),
        ("another first byte, 0x60", first(0x60)),
        ("another first byte, 0x65", first(0x65)),
        ("a request turned into an answer", first(0x63)),
        ("a request turned into a token", first(0x64)),
        ("a token for nothing", token.clone()),
        ("a token with a byte behind it", [&token[..], &[0]].concat()),
    ] {
        bench.silent(Door::Front, &datagram, what)?;
    }
    pong(bench, bench.front).map(drop)
}

pub(super) fn an_altered_request_is_dropped(bench: &mut Bench) -> Outcome {
    let transaction = bench.transaction();
    let good = bench.request(bench.front, transaction, NONE, &Ask::Ping.to_bytes());
    for at in [1, 8, 9, 24, 25, 57, 104, 105, 137, good.len() - 17, good.len() - 1] {
        let mut altered = good.clone();
        altered[at] ^= 1;
        bench.silent(Door::Front, &altered, &format!("byte {at} was altered"))?;
    }
    bench.exchange(Door::Front, transaction, &good).map(drop)
}

pub(super) fn a_request_for_somebody_else_is_dropped(bench: &mut Bench) -> Outcome {
    let other = bench.voice(Door::Back);
    let header = Header::Request { transaction: bench.transaction(), token: NONE };
    let mut message = Ask::Ping.to_bytes();
    message.resize(LONGEST - 25 - NOTE, 0);
    let request = bench.sealed_to(other.peer(), bench.front, &header, &message);
    bench.silent(Door::Front, &request, "it is sealed to another PeerId")?;
    pong(bench, bench.front).map(drop)
}

pub(super) fn a_datagram_of_1201_bytes_is_dropped(bench: &mut Bench) -> Outcome {
    let token = pong(bench, bench.front)?;
    for token in [NONE, token] {
        let mut message = Ask::Ping.to_bytes();
        message.resize(LONGEST + 1 - 25 - NOTE, 0);
        let header = Header::Request { transaction: bench.transaction(), token };
        let request = bench.sealed(bench.front, &header, &message);
        bench.silent(Door::Front, &request, "it has 1,201 bytes")?;
    }
    pong(bench, bench.front).map(drop)
}

pub(super) fn a_request_played_back_gets_no_more_bytes_than_it_has(bench: &mut Bench) -> Outcome {
    let token = pong(bench, bench.front)?;
    let find = Ask::FindNode(bench.rng.bytes32()).to_bytes();
    for token in [NONE, token] {
        let transaction = bench.transaction();
        let request = bench.request(bench.front, transaction, token, &find);
        bench.exchange(Door::Front, transaction, &request)?;
        // Who answers it twice, or to where it came from first, does so by mistake.
        bench.reactions()?;
        // What goes to the victim is sealed to who asked first.
        bench.overhear(bench.front, Door::Back);
        while bench.heard().is_some() {}
        bench.send(Door::Back, &request)?;
        let reactions = bench.reactions()?;
        let mut bytes: usize = reactions.iter().map(|reaction| reaction.len).sum();
        // With what it asks there, as whether somebody is there (§14.8).
        while let Some(asked) = bench.heard() {
            bytes += if asked.voice.door == Door::Back { asked.len } else { 0 };
        }
        ensure!(bytes <= request.len(), "{bytes} bytes for {} that are played back", request.len());
        let astray = reactions.iter().any(|reaction| reaction.door != Door::Back);
        ensure!(!astray, "§14.2: an answer goes elsewhere than where its request came from");
    }
    Ok(())
}
