//! Frames that are in order, and acknowledgements of the subject.

use std::time::Duration;

use wraith_proto::wire::{ConnectionId, Frame, Frames};

use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::Opened;
use crate::protocol::bench::Bench;
use crate::protocol::talk::{Talk, encode};

/// How much later than due an acknowledgement may come.
fn tolerance(bench: &Bench<'_>) -> Duration {
    if bench.is_exact() { Duration::from_millis(1) } else { Duration::from_secs(1) }
}

pub(super) fn unknown_extensions_are_ignored_and_acknowledged(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    for (kind, len) in [(0x40, 0), (0x41, 1), (0x1234, 63), (0x3fff, 700)] {
        let body = vec![0xff; len];
        let number = bench.say(&mut talk, &[Frame::Extension { kind, body: &body }], &[])?;
        bench.acknowledged(&mut talk, number)?;
    }
    // Frames behind one take effect.
    let between = [Frame::Extension { kind: 0x99, body: b"?" }, Frame::Datagram { len: 2 }];
    let (_, packet) = talk.seal(&between, b"me");
    bench.send(&packet)?;
    let echoed =
        bench.hear_until(&mut talk, bench.patience, |_, opened| super::finish::is_echo(opened, b"me"))?;
    ensure!(echoed, "§6.2: a frame behind an unknown one is lost");
    bench.end(talk)
}

pub(super) fn frames_that_ask_for_nothing_get_nothing(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let number = bench.say(&mut talk, &[Frame::Padding { len: 30 }], &[])?;
    let ack = talk.ack();
    let (_, packet) = talk.seal_bytes(&ack, &[]);
    bench.send(&packet)?;
    let delay = Duration::from_millis(talk.channel.theirs().max_ack_delay * 2);
    let heard = bench.hear(&mut talk, delay)?;
    ensure!(heard.is_none(), "§8.3: packets that ask for nothing are answered");
    // With the next that asks they are reported as well.
    bench.alive(&mut talk)?;
    ensure!(talk.is_acked(number), "§8.3: a packet that opened is not reported in the next ACK");
    bench.end(talk)
}

pub(super) fn repeated_frames_are_harmless(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let (id, stream) = (bench.id(), talk.own_stream(false, 0));
    let frames = [
        Frame::Ping,
        Frame::MaxStreamsBi { count: 20 },
        Frame::MaxStreamsUni { count: 20 },
        Frame::NewConnectionId { sequence: 1, retire_prior_to: 0, id },
        Frame::Stream { stream, offset: 0, len: 4, fin: false },
        Frame::MaxStreamData { stream, credit: 1 << 21 },
        Frame::StreamBlocked { stream, credit: 4 },
        Frame::StreamBlocked { stream, credit: 0 },
        Frame::MaxStreamData { stream, credit: 5 },
        Frame::MaxStreamsBi { count: 3 },
        Frame::ResetStream { stream, code: 9, final_size: 4 },
        Frame::StopSending { stream, code: 9 },
    ];
    for _ in 0..3 {
        let number = bench.say(&mut talk, &frames, b"data")?;
        bench.acknowledged(&mut talk, number)?;
    }
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn many_frames_in_a_packet_all_count(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let mut frames = Vec::new();
    for _ in 0..100 {
        frames.extend([Frame::Padding { len: 2 }, Frame::Ping, Frame::Datagram { len: 1 }]);
    }
    let data: Vec<u8> = (0..100).collect();
    let number = bench.say(&mut talk, &frames, &data)?;
    let mut echoes = Vec::new();
    bench.hear_until(&mut talk, bench.patience, |_, opened| {
        for (frame, data) in opened.frames().unwrap_or_default() {
            if matches!(frame, Frame::Datagram { .. }) {
                echoes.extend_from_slice(data);
            }
        }
        echoes.len() >= 100
    })?;
    ensure_eq!(echoes, data, "§5.4: the datagrams of one packet come back as");
    bench.acknowledged(&mut talk, number)?;
    bench.end(talk)
}

pub(super) fn an_ack_comes_within_the_delay(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let limit = Duration::from_millis(talk.channel.theirs().max_ack_delay.min(1 << 14)) + tolerance(bench);
    for _ in 0..3 {
        let number = bench.say(&mut talk, &[Frame::Ping], &[])?;
        let begin = bench.now();
        bench.acknowledged(&mut talk, number)?;
        let took = bench.since(begin);
        ensure!(took <= limit, "§8.3: the acknowledgement came after {took:?}, where {limit:?} is the limit");
    }
    bench.end(talk)
}

/// Fails unless packet `number` is acknowledged at once.
fn at_once(bench: &mut Bench<'_>, talk: &mut Talk, number: u64, what: &str) -> Outcome {
    let begin = bench.now();
    bench.acknowledged(talk, number)?;
    let (took, limit) = (bench.since(begin), tolerance(bench));
    ensure!(took <= limit, "§8.4: {what} is acknowledged after {took:?} and not at once");
    Ok(())
}

pub(super) fn two_packets_are_acknowledged_at_once(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    bench.say(&mut talk, &[Frame::Ping], &[])?;
    let second = bench.say(&mut talk, &[Frame::Ping], &[])?;
    at_once(bench, &mut talk, second, "the second packet that asks")?;
    bench.end(talk)
}

pub(super) fn a_gap_is_acknowledged_at_once(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    talk.channel.skip_to(talk.channel.next_number() + 1);
    let number = bench.say(&mut talk, &[Frame::Ping], &[])?;
    at_once(bench, &mut talk, number, "a packet behind a gap")?;
    bench.end(talk)
}

pub(super) fn no_more_than_64_packets_share_an_ack(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    for _ in 0..20 {
        let mut numbers = Vec::new();
        for _ in 0..64 {
            numbers.push(bench.say(&mut talk, &[Frame::Ping], &[])?);
            if numbers.len() % 16 == 0 {
                // So few at a time that a socket holds them.
                bench.settle()?;
            }
        }
        // A subject that runs by itself may be held up for longer than the bench takes it to have settled.
        let wait = tolerance(bench);
        let acked = bench
            .hear_until(&mut talk, wait, |talk, _| numbers.iter().any(|number| talk.is_acked(*number)))?;
        ensure!(acked, "§8.4: 64 packets have come, and no ACK of any");
    }
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn an_ack_has_at_most_64_ranges_and_the_newest(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let mut last = 0;
    for _ in 0..200 {
        talk.channel.skip_to(talk.channel.next_number() + 1);
        last = bench.say(&mut talk, &[Frame::Ping], &[])?;
        bench.settle()?;
    }
    let mut most = 0;
    let count = |opened: &Opened| {
        let ranges = |frame: &Frame<'_>| if let Frame::Ack(ack) = frame { ack.ranges().len() } else { 0 };
        opened.frames().unwrap_or_default().iter().map(|(frame, _)| ranges(frame)).max().unwrap_or(0)
    };
    let done = bench.hear_until(&mut talk, bench.patience, |talk, opened| {
        most = most.max(count(opened));
        talk.is_acked(last)
    })?;
    ensure!(done, "§8.5: the newest of 200 ranges is not acknowledged");
    ensure_eq!(most, 64, "§8.5: the ranges of the longest ACK");
    bench.end(talk)
}

pub(super) fn retired_ids_are_replaced(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let given: Vec<(u64, ConnectionId)> = talk.ids().iter().map(|(sequence, id)| (*sequence, *id)).collect();
    for &(_, id) in &given {
        talk.channel.address_by(id);
        bench.alive(&mut talk)?;
    }
    let Some(&(newest, _)) = given.last().filter(|(sequence, _)| *sequence > 0) else {
        return bench.end(talk);
    };
    for &(sequence, id) in &given[..given.len() - 1] {
        talk.retire(sequence);
        let number = bench.say(&mut talk, &[Frame::RetireConnectionId { sequence }], &[])?;
        bench.acknowledged(&mut talk, number)?;
        bench.rest(&mut talk)?;
        let back = (talk.channel.remote_id(), id);
        talk.channel.address_by(back.1);
        let (_, packet) = talk.seal(&[Frame::Ping], &[]);
        talk.channel.address_by(back.0);
        bench.dropped(&[packet], &format!("§6.6: a packet for id {sequence}, which was retired"))?;
    }
    let replaced = talk.ids().keys().filter(|sequence| **sequence > newest).count();
    ensure_eq!(replaced, given.len() - 1, "§6.6: ids given in the place of retired ones");
    // Once more for one that is retired already: nothing changes.
    let number = bench.say(&mut talk, &[Frame::RetireConnectionId { sequence: 0 }], &[])?;
    bench.acknowledged(&mut talk, number)?;
    bench.end(talk)
}

pub(super) fn ids_below_retire_prior_to_are_retired(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let id = bench.id();
    let frame = Frame::NewConnectionId { sequence: 1, retire_prior_to: 1, id };
    bench.say(&mut talk, &[frame], &[])?;
    let retires = |opened: &Opened| {
        let bytes = encode(&[Frame::RetireConnectionId { sequence: 0 }]);
        let wanted = Frames::new(&bytes).next();
        opened.frames().is_ok_and(|frames| frames.iter().any(|(frame, _)| Some(Ok(*frame)) == wanted))
    };
    let done = bench.hear_until(&mut talk, bench.patience, |_, opened| retires(opened))?;
    ensure!(done, "§6.6: an id below retire-prior-to is not retired");
    bench.alive(&mut talk)?;
    // From now on the subject addresses this end by the other id.
    bench.say(&mut talk, &[Frame::Datagram { len: 3 }], b"new")?;
    let Some((_, packet)) = bench.next(bench.patience)? else {
        return Err(Verdict::Fail("§6.6: no packet to the new id".to_owned()));
    };
    ensure_eq!(&packet[1..9], &id.0[..], "§6.6: the destination of a packet");
    talk.open(&packet)?;
    bench.end(talk)
}
