//! Peers that move: this end speaks from its other address.

use wraith_proto::wire::Frame;

use crate::case::{Outcome, ensure, ensure_eq};
use crate::peer::Opened;
use crate::protocol::bench::Bench;
use crate::protocol::subject::Door;
use crate::protocol::talk::Talk;

/// The next packet of the session with a challenge at `door`, and what it holds; what stands beside it is checked.
fn challenge(bench: &mut Bench<'_>, talk: &mut Talk, door: Door) -> Outcome<Option<([u8; 8], usize)>> {
    let end = bench.now() + bench.patience;
    while let Some((at, datagram)) = bench.next(end.saturating_sub(bench.now()))? {
        let opened = talk.open(&datagram)?;
        if let Some(token) = token(&opened, |frame| matches!(frame, Frame::PathChallenge { .. }))?
            && at == door
        {
            return Ok(Some((token, datagram.len())));
        }
    }
    Ok(None)
}

/// What the challenge or the answer in a packet holds, if `wanted` finds one.
fn token(opened: &Opened, wanted: impl Fn(&Frame<'_>) -> bool) -> Outcome<Option<[u8; 8]>> {
    let frames = opened.frames()?;
    let Some((frame, _)) = frames.iter().find(|(frame, _)| wanted(frame)) else { return Ok(None) };
    let alone = frames.iter().all(|(other, _)| other == frame || matches!(other, Frame::Padding { .. }));
    ensure!(alone, "§13.2: a challenge or its answer shares its packet with other frames");
    Ok(match *frame {
        Frame::PathChallenge { token } | Frame::PathResponse { token } => Some(token),
        _ => None,
    })
}

pub(super) fn a_challenge_is_answered_where_it_came_from(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    for (number, (door, padding)) in
        [(Door::Front, 0), (Door::Front, 1160), (Door::Back, 0)].into_iter().enumerate()
    {
        let asked = [number as u8 + 1; 8];
        let frames = [Frame::PathChallenge { token: asked }, Frame::Padding { len: padding }];
        let (_, packet) = talk.seal(&frames[..=usize::from(padding > 0)], &[]);
        bench.send_from(door, &packet)?;
        let end = bench.now() + bench.patience;
        let answer = loop {
            let Some((at, datagram)) = bench.next(end.saturating_sub(bench.now()))? else { break None };
            let opened = talk.open(&datagram)?;
            let token = token(&opened, |frame| matches!(frame, Frame::PathResponse { .. }))?;
            if let Some(token) = token.filter(|token| *token == asked) {
                break Some((at, token, datagram.len()));
            }
        };
        let len = if padding > 0 { 1200 } else { 40 };
        ensure_eq!(answer, Some((door, asked, len)), "§13.2: the answer to a challenge comes to");
    }
    bench.end(talk)
}

pub(super) fn a_session_follows_a_peer_that_answers_from_its_new_address(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (_, ping) = talk.seal(&[Frame::Ping], &[]);
    bench.send_from(Door::Back, &ping)?;
    let Some((token, len)) = challenge(bench, &mut talk, Door::Back)? else {
        ensure!(false, "§13.1: a packet from another address begins no check");
        return Ok(());
    };
    ensure!(len <= 3 * ping.len(), "§13.4: {len} bytes for {}", ping.len());
    let (_, answer) = talk.seal(&[Frame::PathResponse { token }], &[]);
    bench.send_from(Door::Back, &answer)?;
    bench.settle()?;
    while bench.next(std::time::Duration::ZERO)?.is_some() {}
    let (number, packet) = talk.seal(&[Frame::Ping], &[]);
    bench.send_from(Door::Back, &packet)?;
    let end = bench.now() + bench.patience;
    while !talk.is_acked(number) {
        let Some((door, datagram)) = bench.next(end.saturating_sub(bench.now()))? else { break };
        talk.open(&datagram)?;
        ensure!(door == Door::Back, "§13.3: the session does not follow its peer");
    }
    ensure!(talk.is_acked(number), "§13.3: a peer that has moved is not heard");
    let (_, close) = talk.seal(&[Frame::CloseApp { code: 0 }], &[]);
    bench.send_from(Door::Back, &close)
}

pub(super) fn a_session_stays_when_the_answer_comes_from_elsewhere(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (_, ping) = talk.seal(&[Frame::Ping], &[]);
    bench.send_from(Door::Back, &ping)?;
    let Some((token, _)) = challenge(bench, &mut talk, Door::Back)? else {
        ensure!(false, "§13.1: a packet from another address begins no check");
        return Ok(());
    };
    // Newer, but from where the peer has always been.
    bench.say(&mut talk, &[Frame::PathResponse { token }], &[])?;
    bench.settle()?;
    while let Some((_, datagram)) = bench.next(std::time::Duration::ZERO)? {
        talk.open(&datagram)?;
    }
    let number = bench.say(&mut talk, &[Frame::Ping], &[])?;
    let end = bench.now() + bench.patience;
    while !talk.is_acked(number) {
        let Some((door, datagram)) = bench.next(end.saturating_sub(bench.now()))? else { break };
        talk.open(&datagram)?;
        ensure!(door == Door::Front, "§13.3: an answer from elsewhere moves the session");
    }
    bench.acknowledged(&mut talk, number)?;
    bench.end(talk)
}
