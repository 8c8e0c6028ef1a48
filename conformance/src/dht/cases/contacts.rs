//! Who becomes a contact, and whom a node names.

use std::time::Duration;

use super::super::bench::{Asked, Bench, Voice};
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::dht::{Ask, Header, Held, Kind, LONGEST, NOTE, Reply};
use crate::protocol::Door;

const TOKEN: [u8; 16] = [7; 16];

/// A table looks around at least this often.
const REFRESH: Duration = Duration::from_mins(40);

pub(super) fn who_only_asks_is_not_named_until_it_answers(bench: &mut Bench) -> Outcome {
    let (front, back) = (bench.front, bench.back);
    let ping = bench.pinged(front)?;
    ensure_eq!(ping.token, [0; 16], "§14.5: the token of a ping for somebody who gave none");
    ensure!(!bench.names(back, front)?, "who only asked is named");
    bench.answer(&ping, &Reply::Pong)?;
    ensure!(bench.names(back, front)?, "who answered is not named");
    ensure!(!bench.names(front, front)?, "§14.10: the one that asks is named");
    Ok(())
}

/// Who asks may have forged its address: with a ping the answer would come to more bytes than it sent.
pub(super) fn who_has_not_proven_its_address_is_not_pinged(bench: &mut Bench) -> Outcome {
    let front = bench.front;
    let (find, value) =
        (Ask::FindNode(bench.rng.bytes32()), Ask::FindValue(bench.rng.bytes32(), Kind::Value));
    for (ask, token) in [(Ask::Ping, [0; 16]), (find, [0; 16]), (value, TOKEN)] {
        let (transaction, mut message) = (bench.transaction(), ask.to_bytes());
        message.resize(LONGEST - 25 - NOTE, 0);
        let request = bench.sealed(front, &Header::Request { transaction, token }, &message);
        let reaction = bench.exchange(front.door, transaction, &request)?;
        let pinged = again(bench, front)?;
        ensure!(pinged.is_none(), "{} bytes and a ping for 1,200 of a stranger", reaction.len);
    }
    bench.pinged(front).map(drop)
}

/// Else nobody whom it asks could know that it receives at its address, and take it into a table.
pub(super) fn who_answers_a_request_without_a_token_is_pinged_with_its_own(bench: &mut Bench) -> Outcome {
    let back = bench.back;
    let search = search(bench)?;
    let nodes = vec![bench.node(back)];
    bench.answer(&search, &Reply::Found { write_token: [1; 8], held: Held::Nothing, nodes })?;
    let Some(asked) = again(bench, back)? else {
        return Err(Verdict::Fail("§14.11: somebody who was named is not asked".to_owned()));
    };
    ensure_eq!(asked.token, [0; 16], "§14.5: the token of a request to somebody who gave none");
    let found = Reply::Found { write_token: [1; 8], held: Held::Nothing, nodes: Vec::new() };
    let answer = bench.answer_to(&asked, &found.to_bytes(&[9; 16]));
    bench.send(Door::Back, &answer)?;
    let Some(ping) = again(bench, back)? else {
        return Err(Verdict::Fail("it does not come back with the token of an answer".to_owned()));
    };
    ensure_eq!((ping.ask, ping.token), (Ask::Ping, [9; 16]), "the ping, and its token");
    Ok(())
}

pub(super) fn an_answer_from_elsewhere_or_of_another_makes_no_contact(bench: &mut Bench) -> Outcome {
    let (front, back, somebody) = (bench.front, bench.back, bench.voice(Door::Front));
    let ping = bench.pinged(front)?;
    let pong = Reply::Pong.to_bytes(&TOKEN);
    let right = bench.answer_to(&ping, &pong);
    let of_another = bench.answer_to(&Asked { voice: somebody, ..ping.clone() }, &pong);
    let mut transaction = ping.transaction;
    transaction[7] ^= 1;
    let to_nothing = bench.answer_to(&Asked { transaction, ..ping.clone() }, &pong);
    let stored = bench.answer_to(&ping, &Reply::Stored { result: 0, seq: 0 }.to_bytes(&TOKEN));
    for (what, door, answer) in [
        ("the answer from another address", Door::Back, &right),
        ("the answer of another PeerId", Door::Front, &of_another),
        ("the answer in another transaction", Door::Front, &to_nothing),
        ("an answer of another kind", Door::Front, &stored),
    ] {
        bench.send(door, answer)?;
        ensure!(!bench.names(back, front)?, "{what} counts");
    }
    ensure!(!bench.names(back, somebody)?, "somebody who answered for another is named");
    bench.send(Door::Front, &right)?;
    ensure!(bench.names(back, front)?, "after all these the right answer does not count");
    Ok(())
}

pub(super) fn answers_to_nothing_are_ignored(bench: &mut Bench) -> Outcome {
    let (front, back) = (bench.front, bench.back);
    let nodes = vec![bench.node(front)];
    for reply in [
        Reply::Pong,
        Reply::Found { write_token: [1; 8], held: Held::Nothing, nodes },
        Reply::Stored { result: 0, seq: 0 },
    ] {
        let header = Header::Answer { transaction: bench.transaction() };
        let answer = bench.sealed(front, &header, &reply.to_bytes(&TOKEN));
        bench.silent(Door::Front, &answer, "an answer to nothing")?;
    }
    ensure!(!bench.names(back, front)?, "who answered to nothing is named");
    Ok(())
}

pub(super) fn a_malformed_answer_does_not_count(bench: &mut Bench) -> Outcome {
    let (front, back) = (bench.front, bench.back);
    let ping = bench.pinged(front)?;
    let pong = Reply::Pong.to_bytes(&TOKEN);
    let answer = bench.answer_to(&ping, &pong);
    let mut altered = answer.clone();
    *altered.last_mut().expect("it is long") ^= 1;
    let behind = bench.answer_to(&ping, &[&pong[..], &[0, 1]].concat());
    let cut = bench.answer_to(&ping, &TOKEN);
    for (what, answer) in [
        ("an altered answer", altered),
        ("bytes behind an answer", behind),
        ("an answer that is cut off", cut),
    ] {
        bench.send(Door::Front, &answer)?;
        ensure!(!bench.names(back, front)?, "{what} counts");
    }
    bench.send(Door::Front, &answer)?;
    ensure!(bench.names(back, front)?, "after three malformed ones the right answer does not count");
    Ok(())
}

/// Each costs an X25519, and who sees a request pass can forge as many as it likes.
pub(super) fn four_answers_to_a_request_are_opened(bench: &mut Bench) -> Outcome {
    let (front, back) = (bench.front, bench.back);
    let ping = bench.pinged(front)?;
    let answer = bench.answer_to(&ping, &Reply::Pong.to_bytes(&TOKEN));
    let mut altered = answer.clone();
    altered[60] ^= 1;
    for _ in 0..4 {
        bench.send(Door::Front, &altered)?;
    }
    bench.send(Door::Front, &answer)?;
    ensure!(!bench.names(back, front)?, "a fifth answer counts");
    Ok(())
}

pub(super) fn who_gets_a_token_asks_again_once(bench: &mut Bench) -> Outcome {
    let (front, back) = (bench.front, bench.back);
    let first = bench.pinged(front)?;
    ensure_eq!(first.len, LONGEST, "§14.5: the length of a request without a token");
    let token = |of: &Asked, token| Header::Token { transaction: of.transaction, token }.to_bytes();
    bench.send(Door::Back, &token(&first, TOKEN))?;
    bench.send(Door::Front, &token(&first, [0; 16]))?;
    ensure!(again(bench, front)?.is_none(), "a token from elsewhere, or one of zeros, counts");
    bench.send(Door::Front, &token(&first, TOKEN))?;
    let Some(second) = again(bench, front)? else {
        return Err(Verdict::Fail("a token for a request is not used".to_owned()));
    };
    ensure_eq!(second.token, TOKEN, "the token of the second request");
    ensure!(second.transaction != first.transaction, "§14.7: a transaction is used again");
    ensure!(second.len < LONGEST, "a request with a token has {} bytes", second.len);
    bench.send(Door::Front, &token(&second, [8; 16]))?;
    ensure!(again(bench, front)?.is_none(), "it asks a third time");
    bench.answer(&first, &Reply::Pong)?;
    ensure!(!bench.names(back, front)?, "§14.7: the former transaction is still good");
    bench.answer(&second, &Reply::Pong)?;
    ensure!(bench.names(back, front)?, "the answer to the second request does not count");
    Ok(())
}

/// The request that the subject makes at once.
fn again(bench: &mut Bench, voice: Voice) -> Outcome<Option<Asked>> {
    bench.reactions()?;
    while let Some(asked) = bench.heard() {
        if asked.voice == voice {
            return Ok(Some(asked));
        }
    }
    Ok(None)
}

pub(super) fn a_private_address_is_not_named_to_a_public_one(bench: &mut Bench) -> Outcome {
    let (private, public, neighbour) = (bench.front, bench.back, bench.voice(Door::Front));
    bench.introduce(private)?;
    bench.introduce(public)?;
    ensure!(bench.names(neighbour, private)?, "a private address is not named to a private one");
    ensure!(bench.names(neighbour, public)?, "a public address is not named to a private one");
    let stranger = bench.voice(Door::Back);
    ensure!(!bench.names(stranger, private)?, "a private address is named to a public one");
    ensure!(bench.names(stranger, public)?, "a public address is not named to a public one");
    Ok(())
}

pub(super) fn a_list_of_21_nodes_is_dropped(bench: &mut Bench) -> Outcome {
    let back = bench.back;
    let search = search(bench)?;
    let found = |count| {
        move |bench: &mut Bench| {
            let nodes = vec![bench.node(back); count];
            Reply::Found { write_token: [1; 8], held: Held::Nothing, nodes }
        }
    };
    let (many, some) = (found(21)(bench), found(20)(bench));
    bench.answer(&search, &many)?;
    ensure!(again(bench, back)?.is_none(), "somebody of a list of 21 is asked");
    bench.answer(&search, &some)?;
    ensure!(again(bench, back)?.is_some(), "nobody of a list of 20 is asked");
    Ok(())
}

/// A request of a lookup of its own, to the front.
fn search(bench: &mut Bench) -> Outcome<Asked> {
    if !bench.is_exact() {
        let why = "its next lookup of its own may be an hour away";
        return Err(Verdict::NotClaimed(why.to_owned()));
    }
    bench.introduce(bench.front)?;
    loop {
        let Some(asked) = bench.asked(REFRESH)? else {
            return Err(Verdict::Fail("§14.8: it never looks for other nodes".to_owned()));
        };
        match asked.ask {
            Ask::FindNode(_) => return Ok(asked),
            _ => bench.answer(&asked, &Reply::Pong)?,
        }
    }
}
