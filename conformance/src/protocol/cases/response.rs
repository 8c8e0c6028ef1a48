//! RESPONSE, where the subject dials.

use std::time::Duration;

use wraith_proto::wire::{HandshakeKind, RESPONSE_MESSAGE_OFFSET, parameter_id as id};

use super::hello;
use crate::case::{Outcome, Verdict, ensure};
use crate::peer::{AES_256_GCM, KeyPair, Parameters, Reception, Response, XCHACHA20_POLY1305, points};
use crate::protocol::bench::Bench;
use crate::protocol::talk::describe;

/// Bytes of the payload in a RESPONSE of 1,200 bytes.
const PADDED: usize = 1079;

/// The genuine RESPONSE behind false ones.
fn genuine(bench: &mut Bench<'_>, response: &Response) -> Outcome {
    let mut talk = bench.received(response)?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn a_response_that_is_cut_off_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    let whole = response.datagram();
    let copies: Vec<Vec<u8>> = bench.places(whole.len()).map(|len| whole[..len].to_vec()).collect();
    bench.dropped(&copies, "§2.5: a RESPONSE that is cut off")?;
    // Whole, and in order but for its length.
    let reception = Reception::new(&bench.profile, &init)?;
    for padded in [PADDED - 1, 0] {
        let (responder, keys) = (bench.id(), bench.keys());
        let payload = reception.parameters(responder).to_bytes(padded);
        let short = reception.respond_with_payload(responder, keys, &payload)?;
        let len = short.datagram().len();
        bench.dropped(&[short.datagram().to_vec()], &format!("§2.5: a RESPONSE of {len} bytes"))?;
    }
    genuine(bench, &response)
}

pub(super) fn an_altered_response_is_dropped_and_the_genuine_one_counts(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    let flip = |at: usize| {
        let mut copy = response.datagram().to_vec();
        copy[at] ^= 1 << (at % 8);
        copy
    };
    let copies: Vec<Vec<u8>> = bench.places(response.datagram().len()).map(flip).collect();
    bench.dropped(&copies, "§4.3: a RESPONSE with an altered byte")?;
    genuine(bench, &response)
}

pub(super) fn a_response_with_wrong_lengths_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    let altered = |at: usize, value: u16| {
        let mut copy = response.datagram().to_vec();
        copy[RESPONSE_MESSAGE_OFFSET - 4 + at..][..2].copy_from_slice(&value.to_be_bytes());
        copy
    };
    let len = (response.datagram().len() - RESPONSE_MESSAGE_OFFSET) as u16;
    let mut copies: Vec<Vec<u8>> = [1, 0x100, u16::MAX].map(|offset| altered(0, offset)).into();
    copies.extend([0, len - 1, len + 1, u16::MAX].map(|total| altered(2, total)));
    copies.push([response.datagram(), &[0]].concat());
    bench.dropped(&copies, "§2.4: a RESPONSE with other lengths than those of its message")?;
    genuine(bench, &response)
}

pub(super) fn a_repeated_response_changes_nothing(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    let mut talk = bench.received(&response)?;
    bench.dropped(&vec![response.datagram().to_vec(); 3], "§4.10: a RESPONSE behind FINISH")?;
    bench.alive(&mut talk)?;
    bench.dropped(&vec![response.datagram().to_vec(); 3], "§4.10: a RESPONSE in a session")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

/// Each of these answers is dropped, and the dial goes on; so few at a time that it bears with them (`PROTO §4.19`).
fn refused(
    bench: &mut Bench<'_>,
    count: usize,
    answer: impl Fn(&mut Bench<'_>, &Reception, usize) -> Outcome<(String, Response)>,
) -> Outcome {
    const PATIENCE: usize = 3;
    for first in (0..count).step_by(PATIENCE) {
        bench.renew()?;
        let init = bench.dialled()?;
        let reception = Reception::new(&bench.profile, &init)?;
        for number in first..count.min(first + PATIENCE) {
            let (what, response) = answer(bench, &reception, number)?;
            bench.dropped(&[response.datagram().to_vec()], &format!("a RESPONSE {what}"))?;
        }
        let response = bench.reception(&init)?;
        genuine(bench, &response)?;
    }
    Ok(())
}

/// An answer whose parameters are changed.
fn changed(
    bench: &mut Bench<'_>,
    reception: &Reception,
    change: impl FnOnce(&mut Parameters),
) -> Outcome<Response> {
    let (responder, keys) = (bench.id(), bench.keys());
    let mut parameters = reception.parameters(responder);
    change(&mut parameters);
    Ok(reception.respond_with(responder, keys, &parameters)?)
}

pub(super) fn a_malformed_response_is_refused_and_the_dial_goes_on(bench: &mut Bench<'_>) -> Outcome {
    let payloads = |reception: &Reception, responder| {
        hello::malformed(&reception.parameters(responder), HandshakeKind::Response, PADDED)
    };
    let init = bench.dialled()?;
    let count = payloads(&Reception::new(&bench.profile, &init)?, bench.id()).len();
    refused(bench, count, |bench, reception, number| {
        let (responder, keys) = (bench.id(), bench.keys());
        let (what, payload) = payloads(reception, responder).swap_remove(number);
        Ok((format!("{what} (§4.4)"), reception.respond_with_payload(responder, keys, &payload)?))
    })
}

pub(super) fn unknown_parameters_in_response_are_ignored(bench: &mut Bench<'_>) -> Outcome {
    for number in 0..4 {
        bench.renew()?;
        let init = bench.dialled()?;
        let reception = Reception::new(&bench.profile, &init)?;
        let (responder, keys) = (bench.id(), bench.keys());
        let (what, payload) = hello::unusual(&reception.parameters(responder), PADDED).swap_remove(number);
        let response = reception.respond_with_payload(responder, keys, &payload)?;
        genuine(bench, &response).map_err(|verdict| match verdict {
            Verdict::Fail(why) => Verdict::Fail(format!("§4.4: a RESPONSE {what}: {why}")),
            other => other,
        })?;
    }
    Ok(())
}

pub(super) fn a_response_with_another_id_inside_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    refused(bench, 2, |bench, reception, number| {
        let known = [id::INITIATOR_ID, id::RESPONDER_ID][number];
        let response = changed(bench, reception, |parameters| {
            let mut value = parameters.get(known).unwrap_or_default().to_vec();
            value[0] ^= 1;
            parameters.set(known, value);
        })?;
        Ok(("with another id inside than outside (§4.6)".to_owned(), response))
    })
}

pub(super) fn a_response_with_another_first_version_is_refused(bench: &mut Bench<'_>) -> Outcome {
    refused(bench, 1, |bench, reception, _| {
        let response = changed(bench, reception, |parameters| {
            parameters.set(id::FIRST_VERSION, 0x7fff_0001u32.to_be_bytes());
        })?;
        Ok(("with another version than was tried first (§4.6)".to_owned(), response))
    })
}

pub(super) fn a_choice_that_does_not_follow_is_refused(bench: &mut Bench<'_>) -> Outcome {
    let choices: [(u64, &[u8]); 3] =
        [(id::SUITE, &[0x7a, 0x7a]), (id::SUITE, &[0, 0]), (id::PROTOCOL, b"nobody-speaks-this/1")];
    refused(bench, choices.len(), |bench, reception, number| {
        let (known, value) = choices[number];
        let response = changed(bench, reception, |parameters| parameters.set(known, value))?;
        Ok(("with a choice that was not offered (§4.5)".to_owned(), response))
    })?;
    // Both are offered, and only one follows from both lists.
    for offered in [[XCHACHA20_POLY1305, AES_256_GCM], [AES_256_GCM, XCHACHA20_POLY1305]] {
        bench.renew()?;
        bench.profile.suites = offered.into();
        let init = bench.dialled()?;
        let reception = Reception::new(&bench.profile, &init)?;
        let suites = reception.offered().get(id::SUITES).unwrap_or_default();
        let both = offered.iter().all(|suite| suites.as_chunks().0.contains(&suite.to_be_bytes()));
        let Ok((right, _)) = reception.choice() else { continue };
        let wrong = if right == AES_256_GCM { XCHACHA20_POLY1305 } else { AES_256_GCM };
        let response =
            changed(bench, &reception, |parameters| parameters.set(id::SUITE, wrong.to_be_bytes()))?;
        if both {
            bench.dropped(
                &[response.datagram().to_vec()],
                "§4.6: a RESPONSE with a suite that does not follow",
            )?;
        }
        let response = bench.reception(&init)?;
        genuine(bench, &response)?;
    }
    Ok(())
}

pub(super) fn an_impostor_gets_no_finish_and_the_dial_goes_on(bench: &mut Bench<'_>) -> Outcome {
    refused(bench, 3, |bench, reception, _| {
        // Proves another identity than the one that was dialled, and breaks no other rule.
        let mut profile = bench.profile.clone();
        profile.identity = bench.identity();
        Ok(("of another peer (§4.8)".to_owned(), answer_as(bench, reception, profile)?))
    })
}

/// The answer that another end would give.
fn answer_as(
    bench: &mut Bench<'_>,
    reception: &Reception,
    profile: crate::peer::Profile,
) -> Outcome<Response> {
    let (responder, keys) = (bench.id(), bench.keys());
    Ok(reception.clone().with_profile(profile).respond(responder, keys)?)
}

pub(super) fn impostors_without_end_end_the_dial(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let reception = Reception::new(&bench.profile, &init)?;
    for _ in 0..8 {
        let mut profile = bench.profile.clone();
        profile.identity = bench.identity();
        let response = answer_as(bench, &reception, profile)?;
        bench.dropped(&[response.datagram().to_vec()], "§4.8: a RESPONSE of another peer")?;
    }
    is_over_after_a_second(bench, &init, "§4.19")
}

/// Asserts that a second later the dial is over, so that not even the right answer begins a session.
pub(super) fn is_over_after_a_second(bench: &mut Bench<'_>, init: &[u8], clause: &str) -> Outcome {
    let end = bench.now() + Duration::from_millis(if bench.is_exact() { 1050 } else { 1500 });
    while bench.now() < end {
        bench.next_raw(end.saturating_sub(bench.now()))?;
    }
    let response = bench.reception(init)?;
    bench.send(response.datagram())?;
    let more = bench.next_raw(Duration::from_secs(1))?;
    match more {
        Some((_, datagram)) => {
            Err(Verdict::Fail(format!("{clause}: {} a second after a false answer", describe(&datagram))))
        }
        None => Ok(()),
    }
}

pub(super) fn a_response_with_another_static_key_is_refused(bench: &mut Bench<'_>) -> Outcome {
    refused(bench, 1, |bench, reception, _| {
        let mut profile = bench.profile.clone();
        // The right name with a key of another.
        profile.identity.keys = bench.keys();
        Ok((
            "with another static key than that of its PeerId (§4.7)".to_owned(),
            answer_as(bench, reception, profile)?,
        ))
    })
}

pub(super) fn an_unacceptable_responder_is_refused(bench: &mut Bench<'_>) -> Outcome {
    let good = bench.profile.identity;
    let count = points::bad_identities(&good).len();
    refused(bench, count, |bench, reception, number| {
        let (what, identity) = points::bad_identities(&good).swap_remove(number);
        let mut profile = bench.profile.clone();
        profile.identity = identity;
        Ok((format!("of {what} (§3.2)"), answer_as(bench, reception, profile)?))
    })
}

pub(super) fn a_response_with_a_point_of_small_order_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let points = points::low_order();
    refused(bench, points.len(), |bench, reception, number| {
        let (responder, keys) = (bench.id(), bench.keys());
        let ephemeral = KeyPair { public: points[number], ..keys };
        Ok(("with a point of small order (§3.3)".to_owned(), reception.respond(responder, ephemeral)?))
    })
}

pub(super) fn a_refusal_ends_the_dial(bench: &mut Bench<'_>) -> Outcome {
    for code in [3, 77] {
        bench.renew()?;
        let init = bench.dialled()?;
        let reception = Reception::new(&bench.profile, &init)?;
        let (responder, keys) = (bench.id(), bench.keys());
        let parameters = bench.profile.refusal(reception.initiator(), responder, code);
        let response = reception.respond_with(responder, keys, &parameters)?;
        bench.send(response.datagram())?;
        bench.settle()?;
        bench.overtake()?;
        let more = bench.next_raw(Duration::from_millis(1500))?;
        ensure!(more.is_none(), "§4.5: something is sent after a refusal");
    }
    Ok(())
}

pub(super) fn a_refusal_of_an_impostor_does_not_end_the_dial(bench: &mut Bench<'_>) -> Outcome {
    refused(bench, 1, |bench, reception, _| {
        let mut profile = bench.profile.clone();
        profile.identity = bench.identity();
        let (responder, keys) = (bench.id(), bench.keys());
        let parameters = profile.refusal(reception.initiator(), responder, 3);
        let response = reception.clone().with_profile(profile).respond_with(responder, keys, &parameters)?;
        Ok(("that refuses, of another peer (§4.5)".to_owned(), response))
    })
}
