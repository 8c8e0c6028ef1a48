//! INIT and its answers, where the subject answers.

use std::time::Duration;

use wraith_proto::wire::{
    CookiePacket, HANDSHAKE_HEADER_LEN, HandshakeKind, INIT_MESSAGE_OFFSET, VersionsPacket,
    is_reserved_version, parameter_id as id,
};

use super::hello;
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::{AES_256_GCM, Answer, Dial, KeyPair, XCHACHA20_POLY1305, peer_id_text, points};
use crate::protocol::bench::Bench;
use crate::protocol::subject::Door;
use crate::protocol::talk::{Talk, describe};

/// Bytes of the payload in an INIT of 1,200 bytes.
const PADDED: usize = 1127;

pub(super) fn an_init_is_answered(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let response = bench.response_to(&dial)?;
    ensure!(response.len() >= 1200, "§2.5: a RESPONSE of {} bytes", response.len());
    let Answer::Met(met) = dial.read(&response)? else {
        return Err(Verdict::Fail("§4.5: it refuses".to_owned()));
    };
    if let Some(peer) = bench.peer_id() {
        let [found, peer] = [met.theirs().peer, peer].map(|id| peer_id_text(&id));
        ensure!(found == peer, "§4.7: it is {found} instead of {peer}");
    }
    ensure!(!met.theirs().ask, "§6.7: it asks where nobody told it to");
    Ok(())
}

pub(super) fn a_repeated_init_gets_the_same_answer(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let first = bench.response_to(&dial)?;
    for _ in 0..2 {
        bench.send(dial.init())?;
        let again = bench.next_of(HandshakeKind::Response, bench.patience)?;
        ensure!(again.is_some_and(|(_, again)| again == first), "§4.10: another RESPONSE to the same INIT");
    }
    Ok(())
}

pub(super) fn a_response_is_repeated_by_timer_within_three_times_the_bytes(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let first = bench.response_to(&dial)?;
    let (begin, mut bytes) = (bench.now(), first.len());
    let again = bench.next_of(HandshakeKind::Response, bench.patience)?;
    ensure!(again.is_some_and(|(_, again)| again == first), "§4.10: RESPONSE is not repeated");
    let pause = bench.since(begin);
    ensure!(pause + bench.early() >= Duration::from_millis(250), "§4.10: repeated after {pause:?}");
    bytes += first.len();
    let paid = dial.init().len();
    while let Some((_, datagram)) = bench.next_raw(Duration::from_millis(1500))? {
        ensure!(datagram == first, "§4.10: {} where RESPONSE is repeated", describe(&datagram));
        bytes += datagram.len();
        ensure!(bytes <= 3 * paid, "§4.11: {bytes} bytes for {paid} of a stranger");
    }
    Ok(())
}

pub(super) fn an_init_from_another_address_is_another_handshake(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let front = bench.response_to(&dial)?;
    bench.send_from(Door::Back, dial.init())?;
    // Repetitions of the first one are passed over.
    let Some((door, back)) = bench.next(bench.patience)? else {
        return Err(Verdict::Fail("§4.12: no RESPONSE to the other address".to_owned()));
    };
    ensure!(HandshakeKind::of(&back) == Some(HandshakeKind::Response), "§4.12: {}", describe(&back));
    ensure_eq!(door, Door::Back, "§4.12: the answer goes to");
    let (Answer::Met(first), Answer::Met(second)) = (dial.read(&front)?, dial.read(&back)?) else {
        return Err(Verdict::Fail("§4.5: it refuses".to_owned()));
    };
    ensure!(first.responder() != second.responder(), "§4.12: one connection id for two handshakes");
    Ok(())
}

pub(super) fn an_init_with_another_payload_is_another_handshake(bench: &mut Bench<'_>) -> Outcome {
    let (profile, id, keys) = (bench.profile.clone(), bench.id(), bench.keys());
    let first = Dial::new(&profile, id, keys)?;
    let mut parameters = profile.init(id);
    parameters.add(27, *b"altered");
    let second = Dial::with(&profile, id, keys, &parameters)?;
    let (one, other) = (bench.meet(&first)?, bench.meet(&second)?);
    ensure!(one.responder() != other.responder(), "§4.12: one handshake for two payloads");
    // Either may be the genuine one.
    for met in [one, other] {
        let (finish, channel) = met.finish()?;
        let mut talk = Talk::new(channel, &profile);
        bench.confirm(&finish, &mut talk)?;
        bench.end(talk)?;
    }
    Ok(())
}

/// Nobody can tell which copy is genuine, so that each may get an answer; the genuine one leads to a session.
pub(super) fn an_altered_init_does_not_stop_the_genuine_one(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let len = dial.init().len();
    for at in (0..INIT_MESSAGE_OFFSET + 48).chain((INIT_MESSAGE_OFFSET + 48..len).step_by(53)) {
        bench.pause()?;
        let mut copy = dial.init().to_vec();
        copy[at] ^= 1 << (at % 8);
        bench.send(&copy)?;
    }
    bench.settle()?;
    // Copies may have been answered, by RESPONSE, COOKIE or VERSIONS: none of that is for this dial.
    bench.forget()?;
    let end = bench.now() + bench.patience;
    let mut init = dial.init().to_vec();
    while bench.now() < end {
        bench.send(&init)?;
        let until = bench.now() + Duration::from_millis(250);
        while let Some((_, answer)) = bench.next_raw(until.saturating_sub(bench.now()))? {
            if let Ok(packet) = CookiePacket::parse(&answer) {
                init = dial.init_with(packet.cookie());
            } else if let Ok(Answer::Met(met)) = dial.read(&answer) {
                let (finish, channel) = met.finish()?;
                let mut talk = Talk::new(channel, &bench.profile);
                bench.confirm(&finish, &mut talk)?;
                return bench.end(talk);
            }
        }
    }
    Err(Verdict::Fail("§4.3: the genuine INIT leads to no session behind altered copies".to_owned()))
}

pub(super) fn an_init_that_is_cut_off_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let copies: Vec<Vec<u8>> = (0..dial.init().len()).map(|len| dial.init()[..len].to_vec()).collect();
    bench.dropped(&copies, "§2.5: an INIT that is cut off")?;
    // Whole, and in order but for its length.
    let profile = bench.profile.clone();
    for padded in [PADDED - 1, 0] {
        let (id, keys) = (bench.id(), bench.keys());
        let short = Dial::with_payload(&profile, id, keys, &profile.init(id).to_bytes(padded))?;
        let len = short.init().len();
        bench.dropped(&[short.init().to_vec()], &format!("§2.5: an INIT of {len} bytes"))?;
    }
    bench.meet(&dial).map(|_| ())
}

pub(super) fn an_init_with_wrong_lengths_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let altered = |at: usize, value: u16| {
        let mut copy = dial.init().to_vec();
        copy[INIT_MESSAGE_OFFSET - 4 + at..][..2].copy_from_slice(&value.to_be_bytes());
        copy
    };
    let len = (dial.init().len() - INIT_MESSAGE_OFFSET) as u16;
    let mut copies: Vec<Vec<u8>> = [1, 2, 0x100, u16::MAX].map(|offset| altered(0, offset)).into();
    copies.extend([0, 1, len - 1, len + 1, u16::MAX].map(|total| altered(2, total)));
    copies.push([dial.init(), &[0]].concat());
    bench.dropped(&copies, "§2.4: an INIT with other lengths than those of its message")?;
    bench.meet(&dial).map(|_| ())
}

pub(super) fn an_init_with_a_destination_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let copies: Vec<Vec<u8>> = (5..13)
        .map(|at| {
            let mut copy = dial.init().to_vec();
            copy[at] = 1;
            copy
        })
        .collect();
    bench.dropped(&copies, "§2.8: an INIT with a destination")?;
    bench.meet(&dial).map(|_| ())
}

pub(super) fn unknown_forms_and_types_are_dropped(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    let copies: Vec<Vec<u8>> = (0..=255)
        .filter(|first| *first != dial.init()[0])
        .map(|first| [&[first], &dial.init()[1..]].concat())
        .collect();
    bench.dropped(
        &copies,
        "§2.8: a datagram of unknown form or type, or of a connection id that nobody has",
    )?;
    bench.meet(&dial).map(|_| ())
}

pub(super) fn noise_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let mut datagrams = vec![Vec::new()];
    for len in (1..1500).step_by(7) {
        let mut datagram = vec![0; len];
        bench.rng.fill(&mut datagram);
        // Not by chance an INIT.
        datagram[0] &= 0x7f;
        datagrams.push(datagram);
    }
    bench.dropped(&datagrams, "§9.4: noise")
}

pub(super) fn answers_to_no_dial_are_dropped(bench: &mut Bench<'_>) -> Outcome {
    let mut datagrams = Vec::new();
    for (kind, len) in [(0x82, 1200), (0x83, 300), (0x84, 37), (0x85, 29)] {
        let mut datagram = vec![0; len];
        (datagram[0], datagram[4]) = (kind, u8::from(kind != 0x85));
        bench.rng.fill(&mut datagram[5..13]);
        datagram[HANDSHAKE_HEADER_LEN..][..4].copy_from_slice(&[0x1a, 0x1a, 0x1a, 0x1a]);
        datagrams.push(datagram);
    }
    bench.dropped(&datagrams, "§2.8: an answer to a dial that nobody made")
}

pub(super) fn an_unknown_version_is_answered_with_versions(bench: &mut Bench<'_>) -> Outcome {
    let dial = bench.dial()?;
    for version in [0, 2, 0x0000_0101, 0x1a2a_3a4a, u32::MAX] {
        for len in [1200, 1472] {
            let mut init = dial.init().to_vec();
            init.resize(len, 0);
            init[1..5].copy_from_slice(&version.to_be_bytes());
            bench.send_from(Door::Back, &init)?;
            let Some((door, answer)) = bench.next_of(HandshakeKind::Versions, bench.patience)? else {
                return Err(Verdict::Fail(format!("§4.16: version {version:#x} is not answered")));
            };
            ensure_eq!(door, Door::Back, "§4.16: the answer goes to");
            ensure!(answer.len() <= len, "§4.16: {} bytes for {len}", answer.len());
            let Ok(packet) = VersionsPacket::parse(&answer) else {
                return Err(Verdict::Fail("§2.8: a malformed VERSIONS".to_owned()));
            };
            ensure_eq!(packet.destination(), dial.id(), "§4.16: VERSIONS names");
            let lists = packet.versions().any(|listed| listed == version);
            ensure!(
                !lists || is_reserved_version(version),
                "§4.16: it lists {version:#x}, which it does not speak"
            );
            ensure!(packet.versions().any(|listed| listed == 1), "§4.16: it does not list version 1");
        }
    }
    let short: Vec<Vec<u8>> = [21, 100, 1199]
        .map(|len| {
            let mut init = dial.init()[..len].to_vec();
            init[1..5].copy_from_slice(&2u32.to_be_bytes());
            init
        })
        .into();
    bench.dropped(&short, "§4.16: an unknown version in less than 1,200 bytes")
}

pub(super) fn a_malformed_init_is_refused(bench: &mut Bench<'_>) -> Outcome {
    let (profile, id) = (bench.profile.clone(), bench.id());
    for (what, payload) in hello::malformed(&profile.init(id), HandshakeKind::Init, PADDED) {
        let keys = bench.keys();
        let dial = Dial::with_payload(&profile, id, keys, &payload)?;
        bench.refused_init(&dial, &format!("§4.4: an INIT {what}"))?;
    }
    let dial = bench.dial()?;
    bench.meet(&dial).map(|_| ())
}

pub(super) fn unknown_parameters_in_init_are_ignored(bench: &mut Bench<'_>) -> Outcome {
    let (profile, id) = (bench.profile.clone(), bench.id());
    for (what, payload) in hello::unusual(&profile.init(id), PADDED) {
        let keys = bench.keys();
        let dial = Dial::with_payload(&profile, id, keys, &payload)?;
        bench.meet(&dial).map_err(|verdict| match verdict {
            Verdict::Fail(why) => Verdict::Fail(format!("§4.4: an INIT {what}: {why}")),
            other => other,
        })?;
    }
    Ok(())
}

pub(super) fn an_init_with_another_id_inside_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let (profile, id, keys) = (bench.profile.clone(), bench.id(), bench.keys());
    for at in 0..8 {
        let mut parameters = profile.init(id);
        let mut other = id.0;
        other[at] ^= 1;
        parameters.set(id::INITIATOR_ID, other);
        let dial = Dial::with(&profile, id, keys, &parameters)?;
        bench.refused_init(&dial, "§4.6: an INIT with another id inside than outside")?;
    }
    let dial = bench.dial()?;
    bench.meet(&dial).map(|_| ())
}

pub(super) fn an_init_with_a_point_of_small_order_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    for public in points::low_order() {
        let (profile, id, keys) = (bench.profile.clone(), bench.id(), bench.keys());
        let dial = Dial::new(&profile, id, KeyPair { public, ..keys })?;
        bench.refused_init(&dial, "§3.3: an INIT with a point of small order")?;
    }
    let dial = bench.dial()?;
    bench.meet(&dial).map(|_| ())
}

pub(super) fn nothing_in_common_is_refused_with_its_code(bench: &mut Bench<'_>) -> Outcome {
    let profile = bench.profile.clone();
    let refused = |bench: &mut Bench<'_>, change: fn(&mut crate::peer::Profile), code: u64| {
        let mut profile = profile.clone();
        change(&mut profile);
        let (id, keys) = (bench.id(), bench.keys());
        let dial = Dial::new(&profile, id, keys)?;
        match bench.shake(&dial)? {
            Answer::Refusal(found) => ensure_eq!(found, code, "§4.5: the code of the refusal"),
            Answer::Met(_) => return Err(Verdict::Fail(format!("§4.5: no refusal with code {code}"))),
        }
        Ok(())
    };
    refused(bench, |profile| profile.versions = vec![2, 0x1a2a_3a4a], 1)?;
    refused(bench, |profile| profile.suites = vec![0x1a2a, 3], 2)?;
    refused(bench, |profile| profile.protocols = vec![b"nobody-speaks-this/1".to_vec()], 3)
}

pub(super) fn the_choice_follows_from_both_lists(bench: &mut Bench<'_>) -> Outcome {
    const UNKNOWN: u16 = 0x7a7a;
    let lists = [
        vec![XCHACHA20_POLY1305, AES_256_GCM],
        vec![AES_256_GCM, XCHACHA20_POLY1305],
        vec![UNKNOWN, XCHACHA20_POLY1305, UNKNOWN + 1, AES_256_GCM],
        vec![AES_256_GCM, UNKNOWN, UNKNOWN + 1, UNKNOWN + 2, XCHACHA20_POLY1305],
    ];
    let protocol = bench.profile.protocols[0].clone();
    for suites in lists {
        let mut profile = bench.profile.clone();
        profile.suites = suites;
        profile.protocols.insert(0, b"nobody-speaks-this/1".to_vec());
        profile.versions = vec![0x2a2a_2a2a, 1];
        let (id, keys) = (bench.id(), bench.keys());
        // `Dial` compares the suite with what follows from both lists.
        let met = bench.meet(&Dial::new(&profile, id, keys)?)?;
        ensure_eq!(met.theirs().protocol, protocol, "§4.5: the protocol");
    }
    Ok(())
}

/// An initiator that tried a version which the subject does not speak, and came down.
pub(super) fn an_initiator_may_come_down_from_another_version(bench: &mut Bench<'_>) -> Outcome {
    let (profile, id, keys) = (bench.profile.clone(), bench.id(), bench.keys());
    let mut parameters = profile.init(id);
    parameters.set(id::FIRST_VERSION, 0x7fff_0001u32.to_be_bytes());
    parameters.set(id::VERSIONS, [[0x7f, 0xff, 0, 1], [0, 0, 0, 1]].concat());
    let dial = Dial::with(&profile, id, keys, &parameters)?;
    let met = bench.meet(&dial)?;
    let mut finish = met.parameters();
    for list in [id::VERSIONS, id::FIRST_VERSION] {
        finish.set(list, parameters.get(list).unwrap_or_default());
    }
    let (finish, channel) = met.finish_with(&finish)?;
    let mut talk = Talk::new(channel, &profile);
    bench.confirm(&finish, &mut talk)?;
    bench.end(talk)
}

pub(super) fn strangers_need_a_cookie_under_load(bench: &mut Bench<'_>) -> Outcome {
    const MOST: usize = 4096;
    let (mut dials, mut asked): (Vec<Dial>, _) = (Vec::new(), None);
    for _ in 0..MOST {
        if bench.is_exact() {
            // Answers to earlier ones have come.
            dials.clear();
        }
        dials.push(bench.dial()?);
        bench.send(dials[dials.len() - 1].init())?;
        asked = bench.answers()?.into_iter().map(|(_, answer)| answer).find(|answer| answer[0] == 0x84);
        if asked.is_some() {
            break;
        }
    }
    let Some(datagram) = asked else {
        return Err(Verdict::NotClaimed(format!("{MOST} handshakes at once are no load for it")));
    };
    let Ok(packet) = CookiePacket::parse(&datagram) else {
        return Err(Verdict::Fail("§2.8: a malformed COOKIE".to_owned()));
    };
    let Some(dial) = dials.into_iter().rfind(|dial| dial.id() == packet.destination()) else {
        return Err(Verdict::Fail("§4.13: COOKIE names another id than that of its INIT".to_owned()));
    };
    let mut wrong = *packet.cookie();
    wrong[3] ^= 1;
    let end = bench.now() + bench.patience;
    let (mut asks, mut calm) = (false, false);
    while !asks && !calm && bench.now() < end {
        bench.send(&dial.init_with(&wrong))?;
        let until = bench.now() + Duration::from_millis(250);
        while !asks
            && !calm
            && let Some((_, again)) = bench.next_raw(until.saturating_sub(bench.now()))?
        {
            asks = again == datagram;
            // Where time goes by, the load may be over.
            calm = !bench.is_exact() && dial.read(&again).is_ok();
        }
    }
    ensure!(asks || calm, "§4.14: a wrong cookie does not count as none");
    if calm {
        return Ok(());
    }
    let right = dial.init_with(packet.cookie());
    let end = bench.now() + bench.patience;
    while bench.now() < end {
        bench.send(&right)?;
        if let Some((_, response)) = bench.next_of(HandshakeKind::Response, Duration::from_millis(250))?
            && dial.read(&response).is_ok()
        {
            return Ok(());
        }
    }
    Err(Verdict::Fail("§4.13: INIT with its cookie is not answered".to_owned()))
}
