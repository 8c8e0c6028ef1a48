//! What the Noise payloads say (`PROTO §4.4`): writing ours, judging theirs.

use core::time::Duration;

use crate::config::{Config, LONGEST_ACK_DELAY, Policy};
use crate::crypto::{PeerId, Suite};
use crate::session::PeerParameters;
use crate::time::Millis;
use crate::wire::{ConnectionId, Full, HandshakeKind, Params, ParamsWriter, Suites, VERSION, parameter_id};

/// Refusals in RESPONSE (`PROTO §4.5`).
const REFUSE_VERSION: u32 = 1;
const REFUSE_SUITE: u32 = 2;
const REFUSE_PROTOCOL: u32 = 3;

/// What the responder chose from the initiator's lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    pub(super) suite: Suite,
    /// Index in `Config::protocols`.
    pub(super) protocol: u8,
}

/// What an end says of itself in RESPONSE and FINISH.
#[derive(Clone, Copy, Debug)]
pub(super) struct Introduction {
    pub(super) peer: PeerId,
    pub(super) instance: [u8; 16],
    pub(super) parameters: PeerParameters,
    pub(super) choice: Choice,
}

/// The connection ids of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ids {
    pub(super) initiator: ConnectionId,
    pub(super) responder: ConnectionId,
}

/// Writes the payload of INIT to all of `out`. `grease` varies what receivers must ignore.
pub(super) fn write_init(
    config: &Config,
    initiator: ConnectionId,
    grease: u64,
    out: &mut [u8],
) -> Result<usize, Full> {
    let len = out.len();
    let mut w = ParamsWriter::new(out);
    write_lists(&mut w, config, grease, VERSION, true)?;
    w.bytes(parameter_id::INITIATOR_ID, &initiator.0)?;
    w.reserved(grease, &grease.to_be_bytes()[..(grease % 8) as usize])?;
    w.pad_to(len)
}

/// Writes the payload of RESPONSE to all of `out`; an error instead of a choice is a refusal.
pub(super) fn write_response(
    config: &Config,
    instance: &[u8; 16],
    ids: Ids,
    first_version: u32,
    choice: Result<Choice, u32>,
    grease: u64,
    out: &mut [u8],
) -> Result<usize, Full> {
    let len = out.len();
    let mut w = ParamsWriter::new(out);
    write_lists(&mut w, config, grease, first_version, false)?;
    write_self(&mut w, config, instance, ids, choice)?;
    if choice.is_ok() && matches!(config.policy, Policy::Ask) {
        w.bytes(parameter_id::ASK, &[])?;
    }
    w.reserved(grease, &[])?;
    w.pad_to(len)
}

/// Writes the payload of FINISH; returns its length.
pub(super) fn write_finish(
    config: &Config,
    instance: &[u8; 16],
    ids: Ids,
    choice: Choice,
    grease: u64,
    out: &mut [u8],
) -> Result<usize, Full> {
    let mut w = ParamsWriter::new(out);
    write_lists(&mut w, config, grease, VERSION, true)?;
    write_self(&mut w, config, instance, ids, Ok(choice))?;
    w.reserved(grease, &[])?;
    Ok(w.len())
}

/// Whether an initiator that tries `version` was right to leave the one that it tried first: who speaks that one was never
/// asked for it in earnest (`PROTO §4.6`).
pub(super) const fn came_down_fairly(first: u32, version: u32) -> bool {
    first == version || first != VERSION
}

/// What the responder, this end, chooses from the initiator's lists, or the refusal (`PROTO §4.5`).
pub(super) fn choose(config: &Config, params: &Params<'_>) -> Result<Choice, u32> {
    if !params.versions.is_some_and(|versions| versions.iter().any(|version| version == VERSION)) {
        return Err(REFUSE_VERSION);
    }
    let suite = params.suites.and_then(|theirs| common_suite(config.suites(), theirs)).ok_or(REFUSE_SUITE)?;
    let protocol = params
        .protocols
        .and_then(|names| names.iter().find_map(|name| protocol_index(config, name)))
        .ok_or(REFUSE_PROTOCOL)?;
    Ok(Choice { suite, protocol })
}

/// The suite in both lists whose worse position among the common ones is best; of equal ones the lowest number
/// (`PROTO §4.5`). It is the same for both ends, whoever dialled.
fn common_suite(ours: &[Suite], theirs: Suites<'_>) -> Option<Suite> {
    let is_ours = |number: &u16| ours.iter().any(|suite| suite.to_wire() == *number);
    let is_theirs = |suite: &&Suite| theirs.iter().any(|number| number == suite.to_wire());
    let ranked = ours.iter().filter(is_theirs).enumerate().filter_map(|(place, &suite)| {
        let number = suite.to_wire();
        let their_place = theirs.iter().filter(is_ours).position(|other| other == number)?;
        Some((place.max(their_place), number, suite))
    });
    ranked.min().map(|(_, _, suite)| suite)
}

/// Fingerprint of what INIT said and FINISH repeats (`PROTO §4.6`).
pub(super) fn lists(params: &Params<'_>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for version in params.versions.iter().flat_map(|list| list.iter()) {
        hasher.update(&version.to_be_bytes());
    }
    hasher.update(&params.first_version.unwrap_or(0).to_be_bytes());
    for suite in params.suites.iter().flat_map(|list| list.iter()) {
        hasher.update(&suite.to_be_bytes());
    }
    for name in params.protocols.iter().flat_map(|list| list.iter()) {
        hasher.update(&[name.len() as u8]).update(name);
    }
    hasher.finalize().into()
}

/// The peer's introduction, if the message has all it needs, the ids are those of the outer header, the suite
/// follows from both lists (`PROTO §4.6`), and the peer is [`proven`].
pub(super) fn introduction(
    config: &Config,
    params: &Params<'_>,
    kind: HandshakeKind,
    ids: Ids,
    static_key: Option<[u8; 32]>,
    pin: Option<PeerId>,
) -> Option<Introduction> {
    params.require(kind).ok()?;
    if params.initiator_id != Some(ids.initiator)
        || params.responder_id != Some(ids.responder)
        // FINISH repeats what INIT said, RESPONSE what this end tried first.
        || kind == HandshakeKind::Response && params.first_version != Some(VERSION)
    {
        return None;
    }
    let peer = proven(config, params.peer?, static_key, pin)?;
    let suite = common_suite(config.suites(), params.suites?)?;
    if params.suite != Some(suite.to_wire()) {
        return None;
    }
    let protocol = protocol_index(config, params.protocol?)?;
    Some(Introduction {
        peer,
        instance: *params.instance?,
        parameters: parameters(params)?,
        choice: Choice { suite, protocol },
    })
}

/// The peer whose public key is `claim`, if the received static key is its own and it is the expected one if one is
/// (`PROTO §3.2, §4.7, §4.8`).
pub(super) fn proven(
    config: &Config,
    claim: &[u8; 32],
    static_key: Option<[u8; 32]>,
    pin: Option<PeerId>,
) -> Option<PeerId> {
    let key = static_key?;
    match pin {
        // It was checked when it became a PeerId.
        Some(pin) if pin.as_bytes() == claim => (config.crypto.static_public(&pin) == key).then_some(pin),
        Some(_) => None,
        None => PeerId::checked_by(config.crypto, claim, &key),
    }
}

/// A version of the form `0x?a?a?a?a`, so that lists with unknown entries stay usual (`PROTO §2.7`).
pub(super) const fn reserved_version(grease: u64) -> u32 {
    (grease as u32 & 0xf0f0_f0f0) | 0x0a0a_0a0a
}

fn write_lists(
    w: &mut ParamsWriter<'_>,
    config: &Config,
    grease: u64,
    first_version: u32,
    protocols: bool,
) -> Result<(), Full> {
    w.versions([VERSION, reserved_version(grease)].into_iter())?;
    w.u32(parameter_id::FIRST_VERSION, first_version)?;
    w.suites(config.suites().iter().map(|suite| suite.to_wire()))?;
    if protocols {
        w.protocols(config.protocols.iter().map(|name| &name[..]))?;
    }
    Ok(())
}

fn write_self(
    w: &mut ParamsWriter<'_>,
    config: &Config,
    instance: &[u8; 16],
    ids: Ids,
    choice: Result<Choice, u32>,
) -> Result<(), Full> {
    w.bytes(parameter_id::INITIATOR_ID, &ids.initiator.0)?;
    w.bytes(parameter_id::RESPONDER_ID, &ids.responder.0)?;
    w.bytes(parameter_id::PEER, config.identity.peer_id().as_bytes())?;
    w.bytes(parameter_id::INSTANCE, instance)?;
    let choice = match choice {
        Ok(choice) => choice,
        Err(refusal) => return w.varint(parameter_id::REFUSAL, u64::from(refusal)),
    };
    w.u16(parameter_id::SUITE, choice.suite.to_wire())?;
    w.bytes(parameter_id::PROTOCOL, &config.protocols[usize::from(choice.protocol)])?;
    let transport = &config.transport;
    w.varint(parameter_id::IDLE_TIMEOUT, millis(transport.idle_timeout))?;
    w.varint(parameter_id::MAX_DATAGRAM, u64::from(transport.max_datagram))?;
    w.varint(parameter_id::STREAM_CREDIT, transport.stream_window.min(crate::wire::varint::MAX))?;
    w.varint(parameter_id::STREAMS_BI, u64::from(config.stream_offer()))?;
    w.varint(parameter_id::STREAMS_UNI, u64::from(config.stream_offer()))?;
    w.varint(parameter_id::MAX_ACK_DELAY, millis(transport.max_ack_delay))
}

fn parameters(params: &Params<'_>) -> Option<PeerParameters> {
    let small = |value: Option<u64>| Some(u32::try_from(value?).unwrap_or(u32::MAX).min(1 << 28));
    Some(PeerParameters {
        idle_timeout: Millis::new(params.idle_timeout?),
        max_datagram: u16::try_from(params.max_datagram?).unwrap_or(u16::MAX),
        stream_credit: params.stream_credit?,
        streams_bi: small(params.streams_bi)?,
        streams_uni: small(params.streams_uni)?,
        max_ack_delay: Millis::new(params.max_ack_delay?.min(LONGEST_ACK_DELAY.as_millis() as u64)),
        ask: params.ask,
    })
}

fn protocol_index(config: &Config, name: &[u8]) -> Option<u8> {
    config.protocols.iter().position(|own| &own[..] == name).map(|index| index as u8)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(crate::wire::varint::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of two lists of numbers, from the view of both ends.
    fn common(ours: &[Suite], theirs: &[u16]) -> Option<u16> {
        let bytes: alloc::vec::Vec<u8> = theirs.iter().flat_map(|number| number.to_be_bytes()).collect();
        let theirs = Suites::parse(&bytes).unwrap();
        common_suite(ours, theirs).map(Suite::to_wire)
    }

    const X: Suite = Suite::XChaCha20Poly1305;
    const A: Suite = Suite::Aes256Gcm;

    /// `PROTO §4.5`
    #[test]
    fn aes_is_chosen_where_both_ends_have_it_first_and_nowhere_else() {
        assert_eq!(common(&[A, X], &[2, 1]), Some(2));
        assert_eq!(common(&[A, X], &[1, 2]), Some(1));
        assert_eq!(common(&[X, A], &[2, 1]), Some(1));
        assert_eq!(common(&[X, A], &[1, 2]), Some(1));
    }

    /// `PROTO §4.5`
    #[test]
    fn suites_that_only_one_end_knows_do_not_count() {
        assert_eq!(common(&[A, X], &[0xaaaa, 2, 0xbbbb, 1]), Some(2));
        assert_eq!(common(&[X, A], &[0xaaaa, 2, 1]), Some(1));
        assert_eq!(common(&[A, X], &[0xaaaa, 1, 2]), Some(1));
        assert_eq!(common(&[A], &[1, 2]), Some(2));
        assert_eq!(common(&[A, X], &[1]), Some(1));
        assert_eq!(common(&[A], &[1, 0xaaaa]), None);
    }

    #[test]
    fn a_list_that_names_a_suite_twice_has_an_answer_too() {
        assert_eq!(common(&[A, X], &[2, 2, 1]), Some(2));
        assert_eq!(common(&[A, X], &[1, 2, 1, 2]), Some(1));
    }
}
