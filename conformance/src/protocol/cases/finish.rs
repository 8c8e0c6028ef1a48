//! FINISH, where the subject answers.

use std::time::Duration;

use wraith_proto::wire::{
    FINISH_MESSAGE_OFFSET, Frame, HandshakeKind, is_handshake, parameter_id as id, visible_destination,
};

use super::hello;
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::{Dial, Met, Parameters, finish_mac, points};
use crate::protocol::bench::Bench;
use crate::protocol::subject::Door;
use crate::protocol::talk::{Talk, describe};

pub(super) fn a_finish_is_confirmed_at_once(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let (finish, channel) = bench.meet(&dial)?.finish()?;
    let mut talk = Talk::new(channel, &bench.profile);
    bench.send(&finish)?;
    let at_once = Duration::from_millis(if bench.is_exact() { 100 } else { 1000 });
    let opened = bench.hear(&mut talk, at_once)?;
    let Some(opened) = opened else {
        return Err(Verdict::Fail("§4.10: no protected packet at once".to_owned()));
    };
    let asks = opened.frames()?.iter().any(|(frame, _)| frame.is_ack_eliciting());
    ensure!(asks, "§4.10: the first packet does not ask for an acknowledgement");
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn a_packet_behind_finish_is_taken(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let (mut finish, channel) = bench.meet(&dial)?.finish()?;
    let mut talk = Talk::new(channel, &bench.profile);
    let (number, packet) = talk.seal(&[Frame::Datagram { len: 5 }], b"hello");
    finish.extend(packet);
    bench.send(&finish)?;
    let echoed = bench.hear_until(&mut talk, bench.patience, |_, opened| is_echo(opened, b"hello"))?;
    ensure!(echoed, "§4.18: the datagram behind FINISH does not come back");
    bench.acknowledged(&mut talk, number)?;
    bench.end(talk)
}

pub(super) fn a_repeated_finish_changes_nothing(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let (finish, channel) = bench.meet(&dial)?.finish()?;
    let mut talk = Talk::new(channel, &bench.profile);
    bench.confirm(&finish, &mut talk)?;
    bench.rest(&mut talk)?;
    bench.dropped(std::slice::from_ref(&finish), "§4.10: a FINISH that came before")?;
    // What stands behind a repetition may be new all the same.
    let (_, packet) = talk.seal(&[Frame::Datagram { len: 5 }], b"again");
    bench.send(&[finish, packet].concat())?;
    let echoed = bench.hear_until(&mut talk, bench.patience, |_, opened| is_echo(opened, b"again"))?;
    ensure!(echoed, "§4.10: a new packet behind a repeated FINISH is lost");
    bench.end(talk)
}

pub(super) fn a_finish_that_is_cut_off_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let (finish, channel) = bench.meet(&dial)?.finish()?;
    let copies: Vec<Vec<u8>> = (0..finish.len()).map(|len| finish[..len].to_vec()).collect();
    bench.dropped(&copies, "§4.3: a FINISH that is cut off")?;
    genuine(bench, &finish, channel)
}

pub(super) fn an_altered_finish_is_dropped_and_the_genuine_one_counts(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let (finish, channel) = bench.meet(&dial)?.finish()?;
    let flip = |at: usize| {
        let mut copy = finish.clone();
        copy[at] ^= 1 << (at % 8);
        copy
    };
    let copies: Vec<Vec<u8>> = (0..finish.len()).map(flip).collect();
    bench.dropped(&copies, "§4.2: a FINISH with an altered byte")?;
    genuine(bench, &finish, channel)
}

/// The genuine FINISH behind false ones.
fn genuine(bench: &mut Bench<'_>, finish: &[u8], channel: crate::peer::Channel) -> Outcome {
    let mut talk = Talk::new(channel, &bench.profile);
    bench.confirm(finish, &mut talk)?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn a_finish_with_wrong_lengths_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let met = bench.meet(&dial)?;
    let (finish, channel) = met.finish()?;
    let end = finish.len() - 16;
    let message = (end - FINISH_MESSAGE_OFFSET) as u16;
    let altered = |at: usize, value: u16| {
        let mut copy = finish.clone();
        copy[FINISH_MESSAGE_OFFSET - 4 + at..][..2].copy_from_slice(&value.to_be_bytes());
        let mac = finish_mac(&met.finish_key(), &copy[..end]);
        copy[end..].copy_from_slice(&mac);
        copy
    };
    let mut copies: Vec<Vec<u8>> = [1, 0x100, u16::MAX].map(|offset| altered(0, offset)).into();
    copies.extend([0, message - 1, message + 1, u16::MAX].map(|total| altered(2, total)));
    bench.dropped(&copies, "§2.4: a FINISH with other lengths than those of its message")?;
    genuine(bench, &finish, channel)
}

pub(super) fn a_finish_from_elsewhere_begins_the_session_where_response_went(
    bench: &mut Bench<'_>,
) -> Outcome {
    let dial = bench.dial()?;
    let (finish, channel) = bench.meet(&dial)?.finish()?;
    let mut talk = Talk::new(channel, &bench.profile);
    bench.send_from(Door::Back, &finish)?;
    let end = bench.now() + bench.patience;
    while let Some((door, datagram)) = bench.next(end.saturating_sub(bench.now()))? {
        if visible_destination(&datagram).is_some_and(|id| talk.is_own(id)) {
            ensure_eq!(door, Door::Front, "§4.11: the session begins at");
            talk.open(&datagram)?;
            bench.alive(&mut talk)?;
            return bench.end(talk);
        }
    }
    Err(Verdict::Fail("§4.11: a FINISH from another address is lost".to_owned()))
}

/// Shakes hands up to FINISH with this payload, which has to be refused: no session begins.
fn refused(bench: &mut Bench<'_>, met: &Met, payload: &[u8], what: &str) -> Outcome {
    let (finish, channel) = met.finish_with_payload(payload)?;
    let mut talk = Talk::new(channel, &bench.profile);
    let ping = talk.seal(&[Frame::Ping], &[]).1;
    bench.dropped(&[finish], &format!("§4.4, §4.6: a FINISH {what}"))?;
    bench.dropped(&[ping], &format!("§4.4, §4.6: a packet behind a FINISH {what}"))
}

fn meet(bench: &mut Bench<'_>) -> Outcome<Met> {
    bench.pause()?;
    let dial = bench.dial()?;
    bench.meet(&dial)
}

pub(super) fn a_malformed_finish_is_refused(bench: &mut Bench<'_>) -> Outcome {
    let count = {
        let met = meet(bench)?;
        hello::malformed(&met.parameters(), HandshakeKind::Finish, 0).len()
    };
    for number in 0..count {
        let met = meet(bench)?;
        let (what, payload) =
            hello::malformed(&met.parameters(), HandshakeKind::Finish, 0).swap_remove(number);
        refused(bench, &met, &payload, &what)?;
    }
    Ok(())
}

pub(super) fn unknown_parameters_in_finish_are_ignored(bench: &mut Bench<'_>) -> Outcome {
    for number in 0..4 {
        let met = meet(bench)?;
        let (what, payload) = hello::unusual(&met.parameters(), 0).swap_remove(number);
        let (finish, channel) = met.finish_with_payload(&payload)?;
        let mut talk = Talk::new(channel, &bench.profile);
        bench.confirm(&finish, &mut talk).map_err(|verdict| match verdict {
            Verdict::Fail(why) => Verdict::Fail(format!("§4.4: a FINISH {what}: {why}")),
            other => other,
        })?;
        bench.end(talk)?;
    }
    Ok(())
}

fn refused_change(bench: &mut Bench<'_>, what: &str, change: impl FnOnce(&mut Parameters)) -> Outcome {
    let met = meet(bench)?;
    let mut parameters = met.parameters();
    change(&mut parameters);
    refused(bench, &met, &parameters.to_bytes(0), what)
}

pub(super) fn a_finish_with_another_id_inside_is_refused(bench: &mut Bench<'_>) -> Outcome {
    for known in [id::INITIATOR_ID, id::RESPONDER_ID] {
        refused_change(bench, "with another id inside than outside", |parameters| {
            let mut value = parameters.get(known).unwrap_or_default().to_vec();
            value[7] ^= 1;
            parameters.set(known, value);
        })?;
    }
    Ok(())
}

pub(super) fn a_finish_with_other_lists_is_refused(bench: &mut Bench<'_>) -> Outcome {
    let changes: [(u64, &[u8]); 6] = [
        (id::VERSIONS, &[0, 0, 0, 1, 0x1a, 0x1a, 0x1a, 0x1a]),
        (id::VERSIONS, &[0, 0, 0, 2]),
        (id::FIRST_VERSION, &[0, 0, 0, 2]),
        (id::SUITES, &[0x7a, 0x7a, 0, 1]),
        (id::SUITES, &[0x7a, 0x7a]),
        (id::PROTOCOLS, b"\x05other"),
    ];
    for (known, value) in changes {
        refused_change(bench, "with other lists than INIT", |parameters| parameters.set(known, value))?;
    }
    Ok(())
}

pub(super) fn a_finish_with_another_choice_is_refused(bench: &mut Bench<'_>) -> Outcome {
    for (known, value) in [(id::SUITE, &[0u8, 2][..]), (id::SUITE, &[0, 0]), (id::PROTOCOL, b"other")] {
        refused_change(bench, "with another choice", |parameters| parameters.set(known, value))?;
    }
    Ok(())
}

pub(super) fn a_finish_of_another_identity_is_refused(bench: &mut Bench<'_>) -> Outcome {
    let other = bench.identity();
    refused_change(bench, "with another PeerId than its static key", |parameters| {
        parameters.set(id::PEER, other.id);
    })
}

pub(super) fn an_unacceptable_identity_is_refused(bench: &mut Bench<'_>) -> Outcome {
    let good = bench.profile.identity;
    for (what, identity) in points::bad_identities(&good) {
        bench.pause()?;
        let mut profile = bench.profile.clone();
        profile.identity = identity;
        let (id, keys) = (bench.id(), bench.keys());
        let met = bench.meet(&Dial::new(&profile, id, keys)?)?;
        let payload = met.parameters().to_bytes(0);
        refused(bench, &met, &payload, &format!("of {what}"))?;
    }
    Ok(())
}

pub(super) fn whoever_is_not_admitted_gets_close(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let (finish, channel) = bench.meet(&dial)?.finish()?;
    let mut talk = Talk::new(channel, &bench.profile);
    bench.send(&finish)?;
    bench.closes(&mut talk, 2, "§4.17: who is not admitted")
}

/// Whether a packet carries these bytes back.
pub(super) fn is_echo(opened: &crate::peer::Opened, data: &[u8]) -> bool {
    let is = |(frame, bytes): &(Frame<'_>, &[u8])| matches!(frame, Frame::Datagram { .. }) && *bytes == data;
    opened.frames().is_ok_and(|frames| frames.iter().any(is))
}

/// Fails unless a datagram is a protected packet.
pub(super) fn is_packet(datagram: &[u8], what: &str) -> Outcome {
    ensure!(!is_handshake(datagram), "{what}: {}", describe(datagram));
    Ok(())
}
