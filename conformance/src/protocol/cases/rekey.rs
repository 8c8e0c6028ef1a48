//! Fresh keys while a session goes on (`PROTO §5.13` to `§5.18`).

use std::time::Duration;

use wraith_proto::wire::{Frame, GROUP_X25519, KeyShare, frame_kind as kind};

use super::{in_time, packets};
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::{Opened, points};
use crate::protocol::bench::Bench;
use crate::protocol::talk::{Talk, encode};

/// Longer than three probe timeouts of a session on a fast path.
const OVERLAP: Duration = Duration::from_secs(1);

/// The share in a packet, with its epoch.
fn share_in(opened: &Opened) -> Option<(u32, [u8; 32])> {
    opened.frames().ok()?.iter().find_map(|(frame, _)| match frame {
        Frame::KeyShare(share) => Some((share.epoch, *share.as_x25519()?)),
        _ => None,
    })
}

/// Waits for the subject's share for an epoch.
fn share(bench: &mut Bench<'_>, talk: &mut Talk, epoch: u32) -> Outcome<[u8; 32]> {
    let mut found = None;
    bench.hear_until(talk, bench.patience, |_, opened| {
        found = share_in(opened);
        found.is_some()
    })?;
    let Some((found, share)) = found else {
        return Err(Verdict::Fail(format!("§5.14: no KEY_SHARE for epoch {epoch}")));
    };
    ensure_eq!(found, epoch, "§5.14: KEY_SHARE is for epoch");
    Ok(share)
}

/// Sends this end's share for the next epoch; returns the epoch, the share and the packet's number.
fn offer(bench: &mut Bench<'_>, talk: &mut Talk) -> Outcome<(u32, [u8; 32], u64)> {
    let keys = bench.keys();
    let (epoch, own) = talk.channel.offer(keys);
    let number = bench.say(talk, &[Frame::KeyShare(KeyShare::x25519(epoch, &own))], &[])?;
    Ok((epoch, own, number))
}

/// Exchanges shares by this end's wish: the keys of the next epoch are there, and nobody sends in it yet.
fn exchange(bench: &mut Bench<'_>, talk: &mut Talk) -> Outcome<(u32, [u8; 32])> {
    let (epoch, own, number) = offer(bench, talk)?;
    let theirs = share(bench, talk, epoch)?;
    talk.channel.take(&theirs)?;
    bench.acknowledged(talk, number)?;
    Ok((epoch, own))
}

/// Goes on in the epoch, in both directions.
fn go_on(bench: &mut Bench<'_>, talk: &mut Talk, epoch: u32) -> Outcome {
    talk.channel.send_in(epoch);
    let number = bench.say(talk, &[Frame::Datagram { len: 4 }], &epoch.to_be_bytes())?;
    let new = bench
        .hear_until(talk, bench.patience, |talk, opened| opened.epoch == epoch && talk.is_acked(number))?;
    ensure!(new, "§5.16: the subject does not go on in epoch {epoch}");
    bench.alive(talk)
}

fn both_ends_change(bench: &mut Bench<'_>, mut talk: Talk) -> Outcome {
    bench.rest(&mut talk)?;
    let (epoch, _) = exchange(bench, &mut talk)?;
    go_on(bench, &mut talk, epoch)?;
    for round in 0u8..20 {
        let (_, packet) = talk.seal(&[Frame::Datagram { len: 1 }], &[round]);
        bench.send(&packet)?;
        bench.hear_until(&mut talk, bench.patience, |talk, _| talk.epoch == epoch)?;
        ensure_eq!(talk.epoch, epoch, "§5.16: the subject goes back to epoch");
        bench.alive(&mut talk)?;
    }
    bench.end(talk)
}

pub(super) fn an_exchange_leads_to_the_next_epoch(bench: &mut Bench<'_>) -> Outcome {
    let talk = bench.session()?;
    both_ends_change(bench, talk)
}

pub(super) fn an_exchange_of_a_dialled_session_leads_to_the_next_epoch(bench: &mut Bench<'_>) -> Outcome {
    let talk = bench.dialled_session()?;
    both_ends_change(bench, talk)
}

pub(super) fn epochs_follow_one_another_in_both_suites(bench: &mut Bench<'_>) -> Outcome {
    packets::in_each_suite(bench, |bench, mut talk| {
        // More than there are key phases.
        for _ in 0..9 {
            bench.rest(&mut talk)?;
            let (epoch, _) = exchange(bench, &mut talk)?;
            go_on(bench, &mut talk, epoch)?;
        }
        bench.end(talk)
    })
}

pub(super) fn the_subject_keeps_to_its_epoch_until_the_peer_has_its_share(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (epoch, _) = exchange(bench, &mut talk)?;
    // Its share is not acknowledged: it cannot know that this end has it.
    for _ in 0..4 {
        let number = bench.say(&mut talk, &[Frame::Ping], &[])?;
        bench.acknowledged(&mut talk, number)?;
        ensure_eq!(
            talk.epoch,
            0,
            "§5.16: without an acknowledgement of its share, the subject sends in epoch"
        );
    }
    // Now everything is, repetitions on their way as well.
    bench.rest(&mut talk)?;
    bench.alive(&mut talk)?;
    ensure_eq!(talk.epoch, epoch, "§5.16: with its share acknowledged, the subject sends in epoch");
    go_on(bench, &mut talk, epoch)?;
    bench.end(talk)
}

pub(super) fn a_packet_of_the_next_epoch_takes_the_subject_along(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (epoch, _) = exchange(bench, &mut talk)?;
    talk.channel.send_in(epoch);
    // It has no ACK in it.
    let number = bench.say(&mut talk, &[Frame::Ping], &[])?;
    bench.acknowledged(&mut talk, number)?;
    ensure_eq!(talk.epoch, epoch, "§5.16: after a packet of the next epoch, the subject sends in epoch");
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn the_subject_begins_an_exchange_in_time(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let mut begun = None;
    for _ in 0..1_000 {
        let number = bench.say(&mut talk, &[Frame::Ping], &[])?;
        bench.hear_until(&mut talk, bench.patience, |talk, opened| {
            begun = begun.or(share_in(opened));
            talk.is_acked(number)
        })?;
        bench.alive(&mut talk)?;
        if begun.is_some() {
            break;
        }
    }
    let Some((epoch, theirs)) = begun else {
        return Err(Verdict::Fail("§5.14: no KEY_SHARE, however many packets it sent".to_owned()));
    };
    ensure_eq!(epoch, 1, "§5.14: KEY_SHARE is for epoch");
    let (_, _, number) = offer(bench, &mut talk)?;
    talk.channel.take(&theirs)?;
    bench.acknowledged(&mut talk, number)?;
    go_on(bench, &mut talk, epoch)?;
    bench.end(talk)
}

pub(super) fn a_repeated_share_changes_nothing(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (epoch, own) = exchange(bench, &mut talk)?;
    let again = Frame::KeyShare(KeyShare::x25519(epoch, &own));
    for _ in 0..3 {
        let number = bench.say(&mut talk, &[again], &[])?;
        bench.acknowledged(&mut talk, number)?;
    }
    go_on(bench, &mut talk, epoch)?;
    for _ in 0..3 {
        let number = bench.say(&mut talk, &[again], &[])?;
        bench.acknowledged(&mut talk, number)?;
    }
    // It is as good as the first time for what follows.
    let (epoch, _) = exchange(bench, &mut talk)?;
    go_on(bench, &mut talk, epoch)?;
    bench.end(talk)
}

pub(super) fn shares_for_former_epochs_are_ignored(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    for _ in 0..2 {
        bench.rest(&mut talk)?;
        let (epoch, _) = exchange(bench, &mut talk)?;
        go_on(bench, &mut talk, epoch)?;
    }
    let strange = Frame::KeyShare(KeyShare::x25519(1, &[9; 32]));
    let number = bench.say(&mut talk, &[strange], &[])?;
    bench.acknowledged(&mut talk, number)?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

/// Sends frames that the subject has to close for.
fn breach(bench: &mut Bench<'_>, talk: &mut Talk, frames: &[u8], what: &str) -> Outcome {
    let (_, packet) = talk.seal_bytes(frames, &[]);
    bench.send(&packet)?;
    bench.violation(talk, what)
}

pub(super) fn shares_against_the_rules_are_violations(bench: &mut Bench<'_>) -> Outcome {
    let good = bench.keys().public;
    let piece = |group: u16, total: u16, offset: u16, len: u16, bytes: &[u8]| {
        let fields = [group, total, offset, len].map(u16::to_be_bytes).concat();
        [&[kind::KEY_SHARE as u8, 1][..], &fields, bytes].concat()
    };
    let own = |epoch| encode(&[Frame::KeyShare(KeyShare::x25519(epoch, &good))]);
    let mut breaches = vec![
        ("§5.15: a share for epoch 0".to_owned(), own(0)),
        ("§5.15: a share for a later epoch than the next".to_owned(), own(2)),
        ("§5.15: a share for the last epoch that there is".to_owned(), own(u32::MAX)),
        ("§5.15: a group that was not agreed on".to_owned(), piece(2, 32, 0, 32, &good)),
        ("§5.15: group 0".to_owned(), piece(0, 32, 0, 32, &good)),
        ("§6.8: an X25519 share in pieces".to_owned(), piece(GROUP_X25519, 32, 0, 16, &good[..16])),
        (
            "§6.8: an X25519 share of 33 bytes".to_owned(),
            piece(GROUP_X25519, 33, 0, 33, &[&good[..], &[0]].concat()),
        ),
        ("§6.8: an empty piece".to_owned(), piece(GROUP_X25519, 32, 0, 0, &[])),
        ("§6.8: a piece beyond its share".to_owned(), piece(GROUP_X25519, 32, 1, 32, &good)),
        ("§6.8: a piece that is cut off".to_owned(), piece(GROUP_X25519, 32, 0, 32, &good[..31])),
    ];
    for point in points::low_order() {
        let frame = encode(&[Frame::KeyShare(KeyShare::x25519(1, &point))]);
        breaches.push(("§3.3: a share of small order".to_owned(), frame));
    }
    for (what, frames) in breaches {
        bench.pause()?;
        let mut talk = bench.session()?;
        breach(bench, &mut talk, &frames, &what)?;
    }
    Ok(())
}

pub(super) fn another_share_for_the_newest_epoch_is_a_violation(bench: &mut Bench<'_>) -> Outcome {
    for goes_on in [false, true] {
        let mut talk = bench.session()?;
        bench.rest(&mut talk)?;
        let (epoch, mut other) = exchange(bench, &mut talk)?;
        if goes_on {
            go_on(bench, &mut talk, epoch)?;
        }
        other[3] ^= 1;
        let frames = encode(&[Frame::KeyShare(KeyShare::x25519(epoch, &other))]);
        breach(bench, &mut talk, &frames, "§5.15: another share for the newest epoch")?;
    }
    Ok(())
}

pub(super) fn a_share_before_a_packet_of_the_present_epoch_is_a_violation(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (epoch, own) = exchange(bench, &mut talk)?;
    let frames = encode(&[Frame::KeyShare(KeyShare::x25519(epoch + 1, &own))]);
    breach(bench, &mut talk, &frames, "§5.15: a share for the next epoch before a packet of the present one")
}

/// A packet of an epoch that is not the one that this end sends in now.
fn of_epoch(talk: &mut Talk, epoch: u32, present: u32, data: &[u8]) -> Vec<u8> {
    talk.channel.send_in(epoch);
    let frame = Frame::Datagram { len: data.len() as u16 };
    let (_, packet) = talk.seal(&[frame], data);
    talk.channel.send_in(present);
    packet
}

pub(super) fn late_packets_of_the_former_epoch_are_taken_for_a_while(bench: &mut Bench<'_>) -> Outcome {
    in_time(bench, late_packets_are_taken)
}

fn late_packets_are_taken(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (epoch, _) = exchange(bench, &mut talk)?;
    let late = of_epoch(&mut talk, 0, epoch, b"late");
    let later = of_epoch(&mut talk, 0, epoch, b"later");
    go_on(bench, &mut talk, epoch)?;
    bench.send(&late)?;
    let echoed =
        bench.hear_until(&mut talk, bench.patience, |_, opened| super::finish::is_echo(opened, b"late"))?;
    ensure!(echoed, "§5.17: a late packet of the former epoch is lost");
    bench.rest(&mut talk)?;
    bench.hear(&mut talk, OVERLAP)?;
    bench.dropped(&[later], "§5.17: a packet of the former epoch, long after the first of the next")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn no_more_than_two_former_epochs_have_keys(bench: &mut Bench<'_>) -> Outcome {
    in_time(bench, two_epochs_have_keys)
}

fn two_epochs_have_keys(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    exchange(bench, &mut talk)?;
    let oldest = of_epoch(&mut talk, 0, 1, b"oldest");
    go_on(bench, &mut talk, 1)?;
    exchange(bench, &mut talk)?;
    let former = of_epoch(&mut talk, 1, 2, b"former");
    go_on(bench, &mut talk, 2)?;
    bench.dropped(
        &[oldest],
        "§5.17: a packet of the epoch before the former, once one of the present arrived",
    )?;
    bench.send(&former)?;
    let echoed =
        bench.hear_until(&mut talk, bench.patience, |_, opened| super::finish::is_echo(opened, b"former"))?;
    ensure!(echoed, "§5.17: a late packet of the former epoch is lost");
    bench.end(talk)
}
