//! How sessions end, and how they stand beside each other.

use std::time::Duration;

use wraith_proto::wire::{Frame, HandshakeKind, frame_kind as kind, is_handshake, visible_destination};

use super::finish::is_packet;
use super::in_time;
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::protocol::bench::Bench;
use crate::protocol::subject::Wish;
use crate::protocol::talk::{Closed, Talk};

pub(super) fn a_close_is_not_answered(bench: &mut Bench<'_>) -> Outcome {
    for close in [Frame::Close { code: 1 }, Frame::CloseApp { code: 0 }, Frame::CloseApp { code: u32::MAX }] {
        let mut talk = bench.session()?;
        bench.rest(&mut talk)?;
        bench.say(&mut talk, &[close], &[])?;
        ensure!(bench.answers()?.is_empty(), "§9.3: {close:?} is answered");
        let packets: Vec<Vec<u8>> = (0..5).map(|_| talk.seal(&[Frame::Ping], &[]).1).collect();
        bench.dropped(&packets, &format!("§9.3: a packet behind {close:?}"))?;
        let later = bench.hear(&mut talk, Duration::from_millis(150))?;
        ensure!(later.is_none(), "§9.3: {close:?} is answered later");
    }
    Ok(())
}

/// Makes the subject close by an unknown frame.
fn break_rule(bench: &mut Bench<'_>, talk: &mut Talk) -> Outcome {
    let (_, packet) = talk.seal_bytes(&[0x3f], &[]);
    bench.send(&packet)?;
    bench.violation(talk, "§9.5: an unknown frame")
}

/// It stays for three probe timeouts.
pub(super) fn a_closed_session_answers_ever_more_seldom(bench: &mut Bench<'_>) -> Outcome {
    in_time(bench, answers_ever_more_seldom)
}

fn answers_ever_more_seldom(bench: &mut Bench<'_>) -> Outcome {
    const PACKETS: usize = 40;
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    break_rule(bench, &mut talk)?;
    let mut answers = 0;
    for number in 0..PACKETS {
        bench.say(&mut talk, &[Frame::Ping], &[])?;
        for (_, datagram) in bench.answers()? {
            is_packet(&datagram, "§9.3: a closed session answers with")?;
            let opened = talk.open(&datagram)?;
            let same = opened.frames()?.iter().all(|(frame, _)| frame.kind() == kind::CLOSE);
            ensure!(same, "§9.3: a closed session says something else than CLOSE");
            ensure_eq!(
                talk.closed(),
                Some(Closed { application: false, code: 1 }),
                "§9.3: the repeated CLOSE"
            );
            answers += 1;
        }
        ensure!(number > 0 || answers == 1, "§9.3: a packet behind CLOSE is answered {answers} times");
    }
    ensure!(answers < PACKETS / 2, "§9.3: {answers} answers to {PACKETS} packets are not ever more seldom");
    Ok(())
}

pub(super) fn a_close_by_both_ends_ends_in_silence(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    break_rule(bench, &mut talk)?;
    bench.say(&mut talk, &[Frame::CloseApp { code: 3 }], &[])?;
    ensure!(bench.answers()?.is_empty(), "§9.3: CLOSE is answered");
    let packets: Vec<Vec<u8>> = (0..5).map(|_| talk.seal(&[Frame::Ping], &[]).1).collect();
    for packet in packets {
        bench.send(&packet)?;
    }
    ensure!(bench.answers()?.is_empty(), "§9.3: a session that both ends closed answers");
    Ok(())
}

pub(super) fn the_application_closes_with_its_code(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    bench.wish(Wish::Close(0xffff_fff0))?;
    bench.hear_until(&mut talk, bench.patience, |talk, _| talk.closed().is_some())?;
    ensure_eq!(talk.closed(), Some(Closed { application: true, code: 0xffff_fff0 }), "§6.1: the close");
    Ok(())
}

pub(super) fn an_idle_session_ends_silently(bench: &mut Bench<'_>) -> Outcome {
    in_time(bench, ends_silently)
}

fn ends_silently(bench: &mut Bench<'_>) -> Outcome {
    bench.profile.idle_timeout = 300;
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    // Whatever its probe timeout is: three of them are over.
    let heard = bench.hear(&mut talk, Duration::from_millis(2_300))?;
    ensure!(heard.is_none(), "§9.1: the end is not silent");
    let packets: Vec<Vec<u8>> = (0..3).map(|_| talk.seal(&[Frame::Ping], &[]).1).collect();
    bench.dropped(&packets, "§9.1: a packet for a session that was silent for longer than the idle timeout")
}

pub(super) fn packets_postpone_the_idle_end(bench: &mut Bench<'_>) -> Outcome {
    in_time(bench, packets_postpone_it)
}

fn packets_postpone_it(bench: &mut Bench<'_>) -> Outcome {
    bench.profile.idle_timeout = 600;
    let mut talk = bench.session()?;
    for _ in 0..6 {
        bench.rest(&mut talk)?;
        bench.hear(&mut talk, Duration::from_millis(250))?;
        bench.alive(&mut talk)?;
    }
    bench.end(talk)
}

pub(super) fn sessions_of_one_side_stand_side_by_side(bench: &mut Bench<'_>) -> Outcome {
    let mut talks = Vec::new();
    for _ in 0..3 {
        talks.push(bench.session()?);
    }
    for talk in &mut talks {
        bench.alive(talk)?;
        bench.say(talk, &[Frame::Datagram { len: 4 }], b"mine")?;
        bench.alive(talk)?;
    }
    talks.into_iter().try_for_each(|talk| bench.end(talk))
}

/// Both ends dial; when both sessions stand, one goes, and both ends know which.
pub(super) fn dials_that_cross_leave_one_session(bench: &mut Bench<'_>) -> Outcome {
    if bench.peer_id().is_none() {
        // A command ends with the session that it dialled.
        return Err(Verdict::NotClaimed("it does not both dial and answer".to_owned()));
    }
    let init = bench.dialled()?;
    let dial = bench.dial()?;
    let met = bench.meet(&dial)?;
    let response = bench.reception(&init)?;
    let (finish, channel) = met.finish()?;
    let mut own = Talk::new(channel, &bench.profile);
    bench.confirm(&finish, &mut own)?;
    let own_stays = bench.profile.identity.id < own.channel.theirs().peer;
    bench.send(response.datagram())?;
    if own_stays && bench.next_of(HandshakeKind::Finish, Duration::from_millis(500))?.is_none() {
        // It knows both, and keeps silent about the one that goes.
        return bench.alive(&mut own);
    }
    let mut its = bench.received(&response)?;
    ensure_eq!(its.channel.theirs().peer, own.channel.theirs().peer, "§4.9: the other end is");
    let (stays, goes) = if own_stays { (&mut own, &mut its) } else { (&mut its, &mut own) };
    bench.alive(stays)?;
    bench.rest(stays)?;
    let (_, ping) = goes.seal(&[Frame::Ping], &[]);
    bench.send(&ping)?;
    for (_, datagram) in bench.answers()? {
        ensure!(
            is_handshake(&datagram) || visible_destination(&datagram).is_some_and(|id| !goes.is_own(id)),
            "§4.9: the session that has to go answers"
        );
    }
    bench.alive(stays).map_err(|_| Verdict::Fail("§4.9: the session that has to stay is gone".to_owned()))
}
