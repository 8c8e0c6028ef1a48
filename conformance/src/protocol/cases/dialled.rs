//! The subject dials: its INIT and FINISH, and answers without state.

use std::time::Duration;

use wraith_proto::wire::{
    COOKIE_LEN, ConnectionId, CookieRepr, Frame, HandshakeKind, INIT_COOKIE_OFFSET, InitPacket, VERSION,
    VersionsRepr, parameter_id as id,
};

use super::response::is_over_after_a_second;
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::{Reception, XCHACHA20_POLY1305};
use crate::protocol::bench::Bench;
use crate::protocol::talk::Talk;

pub(super) fn an_init_is_complete(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    ensure!(init.len() >= 1200, "§2.5: an INIT of {} bytes", init.len());
    let reception = Reception::new(&bench.profile, &init)?;
    let offered = reception.offered();
    let suites = offered.get(id::SUITES).unwrap_or_default();
    ensure!(suites.as_chunks().0.contains(&XCHACHA20_POLY1305.to_be_bytes()), "§3.7: suite 1 is not offered");
    let versions = offered.get(id::VERSIONS).unwrap_or_default();
    ensure!(versions.as_chunks().0.contains(&VERSION.to_be_bytes()), "§2.7: version 1 is not offered");
    let cookie = InitPacket::parse(&init).map(|packet| *packet.cookie());
    ensure_eq!(cookie, Ok([0; COOKIE_LEN]), "§2.3: the cookie of the first INIT");
    Ok(())
}

/// The pauses between repetitions of a message that is not answered.
fn pauses(bench: &mut Bench<'_>, kind: HandshakeKind, message: &[u8]) -> Outcome<Vec<Duration>> {
    let (mut pauses, mut last) = (Vec::new(), bench.now());
    while pauses.len() < 4
        && let Some((_, again)) = bench.next_of(kind, bench.patience.min(Duration::from_secs(2)))?
    {
        ensure!(again == message, "§4.10: a repetition differs");
        pauses.push(bench.since(last));
        last = bench.now();
    }
    Ok(pauses)
}

fn check_pauses(bench: &Bench<'_>, pauses: &[Duration]) -> Outcome {
    let expected = [250, 500, 1000, 1000].map(Duration::from_millis);
    ensure_eq!(pauses.len(), expected.len(), "§4.10: repetitions");
    for (found, expected) in pauses.iter().zip(expected) {
        ensure!(
            *found + bench.early() >= expected,
            "§4.10: a repetition after {found:?} instead of {expected:?}"
        );
        let late = Duration::from_millis(if bench.is_exact() { 5 } else { 1000 });
        ensure!(*found <= expected + late, "§4.10: a repetition after {found:?} instead of {expected:?}");
    }
    Ok(())
}

pub(super) fn an_init_is_repeated_in_its_rhythm(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let pauses = pauses(bench, HandshakeKind::Init, &init)?;
    check_pauses(bench, &pauses)?;
    let response = bench.reception(&init)?;
    bench.received(&response).map(|_| ())
}

fn cookie_for(init: &[u8], byte: u8) -> Outcome<(ConnectionId, Vec<u8>)> {
    let destination =
        InitPacket::parse(init).map_err(|_| Verdict::Fail("§2.3: a malformed INIT".to_owned()))?.source();
    let mut datagram = vec![0; 37];
    let repr = CookieRepr { version: VERSION, destination, cookie: [byte; COOKIE_LEN] };
    repr.emit(&mut datagram).map_err(|_| Verdict::Fail("a COOKIE of another size than 37".to_owned()))?;
    Ok((destination, datagram))
}

pub(super) fn a_cookie_is_carried_at_once(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    for byte in 1..=4 {
        let (_, datagram) = cookie_for(&init, byte)?;
        bench.send(&datagram)?;
        bench.settle()?;
        let end = bench.now() + Duration::from_millis(if bench.is_exact() { 100 } else { 1000 });
        loop {
            let next = bench.next_of(HandshakeKind::Init, end.saturating_sub(bench.now()))?;
            let Some((_, mut again)) = next else {
                let what = format!("§4.13: cookie {byte} does not make it repeat INIT at once");
                return Err(Verdict::Fail(what));
            };
            let cookie = again[INIT_COOKIE_OFFSET..][..COOKIE_LEN].to_vec();
            again[INIT_COOKIE_OFFSET..][..COOKIE_LEN].fill(0);
            ensure!(again == init, "§4.10: INIT with a cookie differs in more than the cookie");
            if cookie == [byte; COOKIE_LEN] {
                break;
            }
            // Repeated by timer, before the cookie came.
            ensure!(!bench.is_exact(), "§4.13: INIT comes with another cookie than {byte}");
        }
    }
    let response = bench.reception(&init)?;
    bench.received(&response).map(|_| ())
}

pub(super) fn cookies_without_end_make_no_flood(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    for byte in 1..=4 {
        bench.send(&cookie_for(&init, byte)?.1)?;
        bench.settle()?;
        bench.next_of(HandshakeKind::Init, Duration::from_millis(100))?;
    }
    // Those behind the fourth wait for the next repetition.
    for byte in 5..=100 {
        bench.send(&cookie_for(&init, byte)?.1)?;
    }
    bench.settle()?;
    let mut sent = 0;
    while bench.next_of(HandshakeKind::Init, Duration::ZERO)?.is_some() {
        sent += 1;
    }
    // A subject that is held up may answer the first ones by now, and repeat INIT by timer.
    let most = if bench.is_exact() { 1 } else { 10 };
    ensure!(sent <= most, "§4.13: 96 further cookies make it send INIT {sent} times at once");
    let response = bench.reception(&init)?;
    bench.received(&response).map(|_| ())
}

pub(super) fn a_malformed_or_late_cookie_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let (_, whole) = cookie_for(&init, 9)?;
    let mut copies: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
    copies.push([&whole[..], &[0]].concat());
    // Version, destination and source.
    for at in (1..5).chain(5..13).chain(13..21) {
        let mut copy = whole.clone();
        copy[at] ^= 0x40;
        copies.push(copy);
    }
    bench.dropped(&copies, "§2.8: a COOKIE that is none")?;
    let response = bench.reception(&init)?;
    let mut talk = bench.received(&response)?;
    bench.dropped(std::slice::from_ref(&whole), "§4.13: a COOKIE behind RESPONSE")?;
    bench.alive(&mut talk)?;
    bench.dropped(&[whole], "§4.13: a COOKIE for a session")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn versions_for(init: &[u8], versions: &[u32]) -> Outcome<Vec<u8>> {
    let (destination, _) = cookie_for(init, 0)?;
    let repr = VersionsRepr { destination, versions };
    let mut datagram = vec![0; repr.buffer_len()];
    repr.emit(&mut datagram).map_err(|_| Verdict::Fail("an empty list".to_owned()))?;
    Ok(datagram)
}

pub(super) fn versions_without_a_common_one_end_the_dial(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    bench.send(&versions_for(&init, &[0x7fff_0001, 0x1a2a_3a4a])?)?;
    bench.overtake()?;
    is_over_after_a_second(bench, &init, "§4.16")
}

pub(super) fn versions_without_a_common_one_do_not_stop_the_peer(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    bench.send(&versions_for(&init, &[0x7fff_0001, 0x1a2a_3a4a])?)?;
    let response = bench.reception(&init)?;
    let mut talk = bench.received(&response)?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn versions_with_the_version_tried_are_ignored(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let other = versions_for(&init, &[0x7fff_0001])?;
    let mut copies = vec![
        versions_for(&init, &[1])?,
        versions_for(&init, &[0x7fff_0001, 1])?,
        [&other[..], &[0]].concat(),
        [&other[..], &[0, 0, 7]].concat(),
    ];
    copies.extend((0..other.len()).map(|len| other[..len].to_vec()));
    for at in (1..5).chain(5..21) {
        let mut copy = other.clone();
        copy[at] ^= 0x40;
        copies.push(copy);
    }
    bench.dropped(&copies, "§4.16: VERSIONS that lists the version tried, or is malformed")?;
    let response = bench.reception(&init)?;
    let mut talk = bench.received(&response)?;
    bench.dropped(std::slice::from_ref(&other), "§4.16: VERSIONS behind RESPONSE")?;
    bench.alive(&mut talk)?;
    bench.dropped(&[other], "§4.16: VERSIONS for a session")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn its_own_init_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    bench.dropped(&vec![init.clone(); 3], "§4.12: its own INIT")?;
    let response = bench.reception(&init)?;
    let mut talk = bench.received(&response)?;
    bench.dropped(&vec![init; 3], "§4.12: its own INIT behind FINISH")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn a_finish_is_complete(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    // `received` reads it by the rules.
    let talk = bench.received(&response)?;
    let (peer, known) = (talk.channel.theirs().peer, bench.peer_id());
    ensure!(known.is_none_or(|known| known == peer), "§4.7: it is another peer than it should be");
    ensure!(!talk.channel.theirs().ask, "§4.4: FINISH has the parameter `ask`");
    Ok(())
}

pub(super) fn a_finish_is_repeated_until_it_is_confirmed(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    bench.send(response.datagram())?;
    let Some((_, finish)) = bench.next_of(HandshakeKind::Finish, bench.patience)? else {
        return Err(Verdict::Fail("§4.1: no FINISH comes".to_owned()));
    };
    let (channel, behind) = response.read(&finish)?;
    let alone = &finish[..finish.len() - behind.len()];
    // A packet may travel with the first one only.
    let pauses = pauses(bench, HandshakeKind::Finish, alone)?;
    check_pauses(bench, &pauses)?;
    let mut talk = Talk::new(channel, &bench.profile);
    bench.alive(&mut talk)?;
    let again = bench.next_of(HandshakeKind::Finish, Duration::from_secs(2))?;
    ensure!(again.is_none(), "§4.10: FINISH is repeated after the first protected packet");
    bench.end(talk)
}

pub(super) fn a_dialled_session_carries_data(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.dialled_session()?;
    for round in 0u8..10 {
        let number = bench.say(&mut talk, &[Frame::Datagram { len: 1 }], &[round])?;
        bench.acknowledged(&mut talk, number)?;
    }
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn no_data_come_before_authorized(bench: &mut Bench<'_>) -> Outcome {
    bench.profile.ask = true;
    let early = |talk: &Talk| talk.data > 0;
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    let mut talk = bench.received(&response)?;
    bench.rest(&mut talk)?;
    bench.hear(&mut talk, Duration::from_millis(500))?;
    ensure!(!early(&talk), "§6.7: application data come before AUTHORIZED");
    for _ in 0..2 {
        let number = bench.say(&mut talk, &[Frame::Authorized], &[])?;
        bench.acknowledged(&mut talk, number)?;
    }
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn a_dial_stays_with_its_address(bench: &mut Bench<'_>) -> Outcome {
    use crate::protocol::subject::Door;
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    // A copy of RESPONSE from elsewhere authenticates as well; FINISH goes to whom was dialled.
    bench.send_from(Door::Back, response.datagram())?;
    let Some((door, finish)) = bench.next_of(HandshakeKind::Finish, bench.patience)? else {
        return Err(Verdict::Fail("§4.11: no FINISH comes".to_owned()));
    };
    ensure_eq!(door, Door::Front, "§4.11: FINISH goes to");
    let (channel, _) = response.read(&finish)?;
    let mut talk = Talk::new(channel, &bench.profile);
    bench.alive(&mut talk)?;
    bench.end(talk)
}
