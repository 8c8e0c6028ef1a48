//! RESPONSE, where the subject dials.

use std::time::Duration;

use wraith_proto::wire::{HandshakeKind, RESPONSE_MESSAGE_OFFSET, parameter_id as id};

use super::{case, hello, points};
use crate::case::{Outcome, Verdict, ensure};
use crate::peer::{AES_256_GCM, KeyPair, Parameters, Reception, Response};
use crate::protocol::bench::{Bench, describe};
use crate::protocol::run::Case;

pub(super) const CASES: &[Case] = &[
    case!("response/cut", "PROTO §2.5, §4.3", Dials, cut),
    case!("response/altered", "PROTO §4.3", Dials, altered),
    case!("response/lengths", "PROTO §2.4", Dials, lengths),
    case!("response/repeated", "PROTO §4.10", Dials, repeated),
    case!("response/malformed_payload", "PROTO §4.4, §1.1, §4.19", Dials, malformed_payload),
    case!("response/unusual_payload", "PROTO §4.4", Dials, unusual_payload),
    case!("response/ids_differ", "PROTO §4.6, §4.3", Dials, ids_differ),
    case!("response/first_version_differs", "PROTO §4.6", Dials, first_version_differs),
    case!("response/choice_not_offered", "PROTO §4.5", Dials, choice_not_offered),
    case!("response/impostor", "PROTO §4.8, §4.19", Dials, impostor),
    case!("response/impostors_without_end", "PROTO §4.19", Dials, impostors_without_end),
    case!("response/other_static_key", "PROTO §4.7", Dials, other_static_key),
    case!("response/bad_identity", "PROTO §3.2", Dials, bad_identity),
    case!("response/low_order_point", "PROTO §3.3", Dials, low_order_point),
    case!("response/refusal", "PROTO §4.5", Dials, refusal),
    case!("response/refusal_of_an_impostor", "PROTO §4.5, §4.19", Dials, refusal_of_an_impostor),
];

/// The genuine RESPONSE behind false ones.
fn genuine(bench: &mut Bench<'_>, response: &Response) -> Outcome {
    let mut talk = bench.received(response)?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn cut(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    let whole = response.datagram();
    let copies: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
    bench.dropped(&copies, "§2.5: a RESPONSE that is cut off")?;
    genuine(bench, &response)
}

fn altered(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let response = bench.reception(&init)?;
    let flip = |at: usize| {
        let mut copy = response.datagram().to_vec();
        copy[at] ^= 1 << (at % 8);
        copy
    };
    let copies: Vec<Vec<u8>> = (0..response.datagram().len()).map(flip).collect();
    bench.dropped(&copies, "§4.3: a RESPONSE with an altered byte")?;
    genuine(bench, &response)
}

fn lengths(bench: &mut Bench<'_>) -> Outcome {
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

fn repeated(bench: &mut Bench<'_>) -> Outcome {
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

const PADDED: usize = 1079;

fn malformed_payload(bench: &mut Bench<'_>) -> Outcome {
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

fn unusual_payload(bench: &mut Bench<'_>) -> Outcome {
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

fn ids_differ(bench: &mut Bench<'_>) -> Outcome {
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

fn first_version_differs(bench: &mut Bench<'_>) -> Outcome {
    refused(bench, 1, |bench, reception, _| {
        let response = changed(bench, reception, |parameters| {
            parameters.set(id::FIRST_VERSION, 0x7fff_0001u32.to_be_bytes());
        })?;
        Ok(("with another version than was tried first (§4.6)".to_owned(), response))
    })
}

fn choice_not_offered(bench: &mut Bench<'_>) -> Outcome {
    let choices: [(u64, &[u8]); 3] =
        [(id::SUITE, &[0x7a, 0x7a]), (id::SUITE, &[0, 0]), (id::PROTOCOL, b"nobody-speaks-this/1")];
    refused(bench, choices.len(), |bench, reception, number| {
        let (known, value) = choices[number];
        let response = changed(bench, reception, |parameters| parameters.set(known, value))?;
        Ok(("with a choice that was not offered (§4.5)".to_owned(), response))
    })?;
    // AES-256-GCM is a choice only if it was offered.
    bench.renew()?;
    let init = bench.dialled()?;
    let reception = Reception::new(&bench.profile, &init)?;
    let suites = reception.offered().get(id::SUITES).unwrap_or_default().to_vec();
    let response =
        changed(bench, &reception, |parameters| parameters.set(id::SUITE, AES_256_GCM.to_be_bytes()))?;
    if !suites.as_chunks().0.contains(&AES_256_GCM.to_be_bytes()) {
        bench.dropped(
            &[response.datagram().to_vec()],
            "§4.5: a RESPONSE with AES-256-GCM, which was not offered",
        )?;
    }
    Ok(())
}

fn impostor(bench: &mut Bench<'_>) -> Outcome {
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

fn impostors_without_end(bench: &mut Bench<'_>) -> Outcome {
    let init = bench.dialled()?;
    let reception = Reception::new(&bench.profile, &init)?;
    for _ in 0..8 {
        let mut profile = bench.profile.clone();
        profile.identity = bench.identity();
        let response = answer_as(bench, &reception, profile)?;
        bench.dropped(&[response.datagram().to_vec()], "§4.8: a RESPONSE of another peer")?;
    }
    // A second later the dial is over.
    let end = bench.now() + Duration::from_millis(if bench.is_exact() { 1050 } else { 1500 });
    while bench.now() < end {
        bench.next_raw(end.saturating_sub(bench.now()))?;
    }
    let response = bench.reception(&init)?;
    bench.send(response.datagram())?;
    let more = bench.next_raw(Duration::from_secs(1))?;
    match more {
        Some((_, datagram)) => {
            Err(Verdict::Fail(format!("§4.19: {} a second after eight impostors", describe(&datagram))))
        }
        None => Ok(()),
    }
}

fn other_static_key(bench: &mut Bench<'_>) -> Outcome {
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

fn bad_identity(bench: &mut Bench<'_>) -> Outcome {
    let good = bench.profile.identity;
    let count = points::bad_identities(&good).len();
    refused(bench, count, |bench, reception, number| {
        let (what, identity) = points::bad_identities(&good).swap_remove(number);
        let mut profile = bench.profile.clone();
        profile.identity = identity;
        Ok((format!("of {what} (§3.2)"), answer_as(bench, reception, profile)?))
    })
}

fn low_order_point(bench: &mut Bench<'_>) -> Outcome {
    let points = points::low_order();
    refused(bench, points.len(), |bench, reception, number| {
        let (responder, keys) = (bench.id(), bench.keys());
        let ephemeral = KeyPair { public: points[number], ..keys };
        Ok(("with a point of small order (§3.3)".to_owned(), reception.respond(responder, ephemeral)?))
    })
}

fn refusal(bench: &mut Bench<'_>) -> Outcome {
    for code in [3, 77] {
        bench.renew()?;
        let init = bench.dialled()?;
        let reception = Reception::new(&bench.profile, &init)?;
        let (responder, keys) = (bench.id(), bench.keys());
        let parameters = bench.profile.refusal(reception.initiator(), responder, code);
        let response = reception.respond_with(responder, keys, &parameters)?;
        bench.send(response.datagram())?;
        bench.settle()?;
        let more = bench.next_raw(Duration::from_millis(1500))?;
        ensure!(more.is_none(), "§4.5: something is sent after a refusal");
    }
    Ok(())
}

fn refusal_of_an_impostor(bench: &mut Bench<'_>) -> Outcome {
    refused(bench, 1, |bench, reception, _| {
        let mut profile = bench.profile.clone();
        profile.identity = bench.identity();
        let (responder, keys) = (bench.id(), bench.keys());
        let parameters = profile.refusal(reception.initiator(), responder, 3);
        let response = reception.clone().with_profile(profile).respond_with(responder, keys, &parameters)?;
        Ok(("that refuses, of another peer (§4.5)".to_owned(), response))
    })
}
