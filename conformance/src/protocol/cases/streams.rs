//! Streams, where both ends keep to the rules.

use std::time::Duration;

use wraith_proto::wire::Frame;

use crate::case::{Outcome, ensure, ensure_eq};
use crate::peer::Opened;
use crate::protocol::bench::Bench;
use crate::protocol::subject::Wish;
use crate::protocol::talk::Talk;

/// The frames of a packet that `pick` takes.
fn picked<T>(opened: &Opened, pick: impl Fn(&Frame<'_>) -> Option<T>) -> Vec<T> {
    opened.frames().unwrap_or_default().iter().filter_map(|(frame, _)| pick(frame)).collect()
}

/// Waits for a frame that `pick` takes.
fn wait_for<T>(
    bench: &mut Bench<'_>,
    talk: &mut Talk,
    what: &str,
    pick: impl Fn(&Frame<'_>) -> Option<T>,
) -> Outcome<T> {
    let mut found = None;
    bench.hear_until(talk, bench.patience, |_, opened| {
        found = picked(opened, &pick).pop();
        found.is_some()
    })?;
    found.ok_or_else(|| crate::case::Verdict::Fail(format!("{what} does not come")))
}

pub(super) fn pieces_come_in_any_order_and_twice(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    for unidirectional in [true, false] {
        let stream = talk.own_stream(unidirectional, 0);
        let data = |offset, len, fin| Frame::Stream { stream, offset, len, fin };
        let pieces = [
            data(100, 50, true),
            data(0, 10, false),
            data(5, 20, false),
            data(140, 10, true),
            data(149, 1, false),
            data(0, 0, false),
            data(150, 0, true),
            data(20, 100, false),
            data(0, 150, true),
        ];
        for piece in pieces {
            let number = bench.say(&mut talk, &[piece], &vec![7; piece.data_len()])?;
            bench.acknowledged(&mut talk, number)?;
        }
        // It is over: what comes again changes nothing.
        for piece in [data(0, 10, false), Frame::ResetStream { stream, code: 1, final_size: 150 }] {
            let number = bench.say(&mut talk, &[piece], &vec![7; piece.data_len()])?;
            bench.acknowledged(&mut talk, number)?;
        }
    }
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn a_stream_opens_those_below_it(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let high = talk.own_stream(false, 3);
    bench.say(&mut talk, &[Frame::Stream { stream: high, offset: 0, len: 1, fin: false }], b"x")?;
    // Their other halves exist as well, so that credit for them is no violation.
    for sequence in 0..3 {
        let stream = talk.own_stream(false, sequence);
        let number = bench.say(&mut talk, &[Frame::MaxStreamData { stream, credit: 1 << 21 }], &[])?;
        bench.acknowledged(&mut talk, number)?;
    }
    bench.end(talk)
}

pub(super) fn streams_and_credit_may_be_used_to_the_last(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let theirs = talk.channel.theirs().clone();
    let last = |count: u64| u32::try_from(count).unwrap_or(u32::MAX).min(1 << 30).saturating_sub(1);
    let credit = theirs.stream_credit;
    for stream in
        [talk.own_stream(true, last(theirs.streams_uni)), talk.own_stream(false, last(theirs.streams_bi))]
    {
        let data = Frame::Stream { stream, offset: credit - 5, len: 5, fin: true };
        let number = bench.say(&mut talk, &[data], &[7; 5])?;
        bench.acknowledged(&mut talk, number)?;
    }
    let stream = talk.own_stream(true, 0);
    let reset = Frame::ResetStream { stream, code: 0, final_size: credit };
    let number = bench.say(&mut talk, &[reset], &[])?;
    bench.acknowledged(&mut talk, number)?;
    bench.end(talk)
}

pub(super) fn streams_that_end_make_room_for_others(bench: &mut Bench<'_>) -> Outcome {
    /// Streams in a packet.
    const AT_ONCE: u32 = 16;
    let mut talk = bench.session()?;
    let first = u32::try_from(talk.channel.theirs().streams_uni).unwrap_or(u32::MAX).min(4096);
    let raised =
        |frame: &Frame<'_>| if let Frame::MaxStreamsUni { count } = frame { Some(*count) } else { None };
    let mut allowed = talk.channel.theirs().streams_uni;
    for from in (0..first).step_by(AT_ONCE as usize) {
        let streams = from..first.min(from + AT_ONCE);
        let data = |sequence| Frame::Stream {
            stream: talk.own_stream(true, sequence),
            offset: 0,
            len: 1,
            fin: true,
        };
        let frames: Vec<Frame<'_>> = streams.map(data).collect();
        let number = bench.say(&mut talk, &frames, &vec![7; frames.len()])?;
        bench.hear_until(&mut talk, bench.patience, |talk, opened| {
            allowed = picked(opened, raised).into_iter().max().unwrap_or(0).max(allowed);
            talk.is_acked(number)
        })?;
        ensure!(talk.is_acked(number), "§7.1: streams from {from} of {first} on are not taken");
    }
    if allowed == u64::from(first) {
        allowed = wait_for(bench, &mut talk, "§7.1: MAX_STREAMS_UNI after all streams ended", raised)?;
    }
    ensure!(allowed > first.into(), "§7.1: no more than {first} streams, though all have ended");
    let stream = talk.own_stream(true, u32::try_from(allowed - 1).unwrap_or(u32::MAX));
    let number = bench.say(&mut talk, &[Frame::Stream { stream, offset: 0, len: 1, fin: true }], b"x")?;
    bench.acknowledged(&mut talk, number)?;
    bench.end(talk)
}

/// Hears and acknowledges until the stream has reached `end`.
fn read_to(bench: &mut Bench<'_>, talk: &mut Talk, stream: u32, end: u64) -> Outcome {
    let limit = bench.now() + bench.patience;
    while talk.heard.get(&stream).copied().unwrap_or(0) < end && bench.now() < limit {
        bench.hear(talk, Duration::from_millis(200))?;
        let ack = talk.ack();
        let (_, packet) = talk.seal_bytes(&ack, &[]);
        bench.send(&packet)?;
    }
    let heard = talk.heard.get(&stream).copied().unwrap_or(0);
    ensure!(heard >= end, "§7.2: the stream has reached {heard}, where {end} may be sent");
    Ok(())
}

pub(super) fn the_subject_keeps_to_its_credit(bench: &mut Bench<'_>) -> Outcome {
    bench.profile.stream_credit = 1000;
    let mut talk = bench.session()?;
    bench.wish(Wish::SendStream(5000))?;
    let stream = talk.its_stream(true, 0);
    // `Talk` fails the case if a byte goes beyond the credit.
    let blocked = |frame: &Frame<'_>| match *frame {
        Frame::StreamBlocked { stream: named, credit } if named == stream => Some(credit),
        _ => None,
    };
    let credit = wait_for(bench, &mut talk, "§7.8: STREAM_BLOCKED", blocked)?;
    ensure_eq!(credit, 1000, "§7.8: it is blocked at");
    read_to(bench, &mut talk, stream, 1000)?;
    bench.rest(&mut talk)?;
    // A smaller value changes nothing.
    bench.say(&mut talk, &[Frame::MaxStreamData { stream, credit: 500 }], &[])?;
    bench.rest(&mut talk)?;
    for credit in [3000, 5000] {
        bench.say(&mut talk, &[Frame::MaxStreamData { stream, credit }], &[])?;
        read_to(bench, &mut talk, stream, credit)?;
    }
    bench.end(talk)
}

pub(super) fn credit_is_raised_as_bytes_are_taken(bench: &mut Bench<'_>) -> Outcome {
    /// Packets before one has to be acknowledged.
    const AT_ONCE: u64 = 16;
    let mut talk = bench.session()?;
    let (stream, first) = (talk.own_stream(true, 0), talk.channel.theirs().stream_credit.min(16 << 20));
    let raised = |frame: &Frame<'_>| match *frame {
        Frame::MaxStreamData { stream: named, credit } if named == stream => Some(credit),
        _ => None,
    };
    let (mut offset, mut credit) = (0, first);
    while offset < first && credit == first {
        let mut number = 0;
        for _ in 0..AT_ONCE {
            let len = (first - offset).min(1000) as u16;
            let data = Frame::Stream { stream, offset, len, fin: false };
            number = bench.say(&mut talk, &[data], &vec![7; len.into()])?;
            offset += u64::from(len);
        }
        bench.hear_until(&mut talk, bench.patience, |talk, opened| {
            credit = picked(opened, raised).into_iter().max().unwrap_or(0).max(credit);
            talk.is_acked(number)
        })?;
        ensure!(talk.is_acked(number), "§8.3: packet {number} is not acknowledged");
    }
    if credit == first {
        credit = wait_for(bench, &mut talk, "§7.2: MAX_STREAM_DATA for a stream that is used up", raised)?;
    }
    ensure!(credit > first, "§7.2: the new credit of {credit} is no more than the first");
    let data = Frame::Stream { stream, offset: credit - 1, len: 1, fin: false };
    let number = bench.say(&mut talk, &[data], b"x")?;
    bench.acknowledged(&mut talk, number)?;
    bench.end(talk)
}

pub(super) fn a_stopped_stream_is_reset_with_the_same_code(bench: &mut Bench<'_>) -> Outcome {
    bench.profile.stream_credit = 500;
    let mut talk = bench.session()?;
    bench.wish(Wish::SendStream(5000))?;
    let stream = talk.its_stream(true, 0);
    read_to(bench, &mut talk, stream, 500)?;
    bench.say(&mut talk, &[Frame::StopSending { stream, code: 77 }], &[])?;
    let reset = |frame: &Frame<'_>| match *frame {
        Frame::ResetStream { stream: named, code, final_size } if named == stream => Some((code, final_size)),
        _ => None,
    };
    let found = wait_for(bench, &mut talk, "§7.8: RESET_STREAM after STOP_SENDING", reset)?;
    ensure_eq!(found, (77, 500), "§7.8: code and final size of the reset");
    bench.end(talk)
}

pub(super) fn a_stream_can_be_stopped(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let stream = talk.own_stream(true, 0);
    let number = bench.say(&mut talk, &[Frame::Stream { stream, offset: 0, len: 3, fin: false }], b"abc")?;
    bench.acknowledged(&mut talk, number)?;
    bench.wish(Wish::StopStream(stream, 88))?;
    let stop = |frame: &Frame<'_>| match *frame {
        Frame::StopSending { stream: named, code } if named == stream => Some(code),
        _ => None,
    };
    ensure_eq!(wait_for(bench, &mut talk, "§7.8: STOP_SENDING", stop)?, 88, "§7.8: its code");
    let number = bench.say(&mut talk, &[Frame::ResetStream { stream, code: 88, final_size: 3 }], &[])?;
    bench.acknowledged(&mut talk, number)?;
    bench.end(talk)
}

/// A packet whose frames are not acknowledged is lost, and they come again in others.
pub(super) fn lost_data_come_again_in_new_packets(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    bench.wish(Wish::SendStream(3000))?;
    let stream = talk.its_stream(true, 0);
    let from = |frame: &Frame<'_>| match *frame {
        Frame::Stream { stream: named, offset, .. } if named == stream => Some(offset),
        _ => None,
    };
    // Nothing is acknowledged, so the beginning comes twice; `Talk` sees to it that no number does.
    for turn in ["first", "second"] {
        let end = bench.now() + bench.patience;
        let mut offset = wait_for(bench, &mut talk, &format!("§8.1: the {turn} packet of the stream"), from)?;
        while offset != 0 && bench.now() < end {
            offset = wait_for(bench, &mut talk, &format!("§8.1: the {turn} packet of the stream"), from)?;
        }
    }
    read_to(bench, &mut talk, stream, 3000)?;
    bench.end(talk)
}

pub(super) fn refused_bytes_are_reported_before_they_are_acknowledged(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    bench.wish(Wish::RefuseBytes)?;
    let stream = talk.own_stream(true, 0);
    let data = Frame::Stream { stream, offset: 0, len: 500, fin: true };
    let refused = bench.say(&mut talk, &[data], &[7; 500])?;
    let later = bench.say(&mut talk, &[Frame::Ping], &[])?;
    let report = |frame: &Frame<'_>| match *frame {
        Frame::StreamHoles { stream: named, report, offset, len } if named == stream => {
            Some((report, offset, len))
        }
        _ => None,
    };
    let first = wait_for(bench, &mut talk, "§7.5: a report of the refused bytes", report)?;
    ensure_eq!(first, (1, 0, 500), "§7.5: number, offset and length of the first report");
    // Time without answer: the report comes again, identical, and nothing from the refused packet on is acknowledged.
    let again = wait_for(bench, &mut talk, "§7.5: the report once more", report)?;
    ensure_eq!(again, first, "§7.5: the repeated report");
    ensure!(!talk.is_acked(refused), "§7.5: a refused packet is acknowledged before its report was taken");
    ensure!(
        !talk.is_acked(later),
        "§7.5: a packet behind a refused one is acknowledged before the report was taken"
    );
    bench.say(&mut talk, &[Frame::HolesTaken { stream, report: 1 }], &[])?;
    bench.acknowledged(&mut talk, refused)?;
    bench.acknowledged(&mut talk, later)?;
    bench.wish(Wish::GrantBytes(stream, 0))?;
    let granted = |frame: &Frame<'_>| match *frame {
        Frame::MaxStreamData { stream: named, .. } if named == stream => Some(()),
        _ => None,
    };
    wait_for(bench, &mut talk, "§7.5: MAX_STREAM_DATA that ends the wait", granted)?;
    let number = bench.say(&mut talk, &[data], &[7; 500])?;
    bench.acknowledged(&mut talk, number)?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn reported_bytes_come_again_after_a_grant(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.wish(Wish::SendStream(2000))?;
    let stream = talk.its_stream(true, 0);
    // Nothing is acknowledged, for the sender forgets a stream that is.
    bench.hear_until(&mut talk, bench.patience, |talk, _| talk.heard.get(&stream) == Some(&2000))?;
    let taken = |frame: &Frame<'_>| match *frame {
        Frame::HolesTaken { stream: named, report } if named == stream => Some(report),
        _ => None,
    };
    for _ in 0..2 {
        bench.say(&mut talk, &[Frame::StreamHoles { stream, report: 1, offset: 100, len: 300 }], &[])?;
        let report = wait_for(bench, &mut talk, "§7.5: HOLES_TAKEN", taken)?;
        ensure_eq!(report, 1, "§7.5: the number of the report that was taken");
    }
    // The stream waits for MAX_STREAM_DATA.
    let piece = |frame: &Frame<'_>| match *frame {
        Frame::Stream { stream: named, offset, len, .. } if named == stream => Some((offset, len)),
        _ => None,
    };
    let ack = talk.ack();
    let (_, packet) = talk.seal_bytes(&ack, &[]);
    bench.send(&packet)?;
    let early = bench
        .hear_until(&mut talk, Duration::from_millis(400), |_, opened| !picked(opened, piece).is_empty())?;
    ensure!(!early, "§7.5: data of a stream that was held by a report come before MAX_STREAM_DATA");
    let credit = bench.profile.stream_credit;
    bench.say(&mut talk, &[Frame::MaxStreamData { stream, credit }], &[])?;
    let (offset, len) = wait_for(bench, &mut talk, "§7.5: the refused bytes", piece)?;
    ensure_eq!((offset, len), (100, 300), "§7.5: what comes again");
    bench.end(talk)
}

pub(super) fn authorized_ends_the_wait(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    ensure!(talk.channel.theirs().ask, "§4.4: RESPONSE lacks the parameter `ask`");
    // What names no stream and carries no data may come before.
    let (id, count) = (bench.id(), 30);
    let early = [
        Frame::Ping,
        Frame::MaxStreamsBi { count },
        Frame::MaxStreamsUni { count },
        Frame::NewConnectionId { sequence: 1, retire_prior_to: 0, id },
        Frame::Extension { kind: 0x77, body: b"early" },
    ];
    let number = bench.say(&mut talk, &early, &[])?;
    bench.acknowledged(&mut talk, number)?;
    bench.wish(Wish::Authorize)?;
    let authorized = |frame: &Frame<'_>| matches!(frame, Frame::Authorized).then_some(());
    wait_for(bench, &mut talk, "§6.7: AUTHORIZED", authorized)?;
    let (_, packet) = talk.seal(&[Frame::Datagram { len: 4 }], b"late");
    bench.send(&packet)?;
    let echoed =
        bench.hear_until(&mut talk, bench.patience, |_, opened| super::finish::is_echo(opened, b"late"))?;
    ensure!(echoed, "§6.7: a datagram after AUTHORIZED does not come back");
    bench.end(talk)
}
